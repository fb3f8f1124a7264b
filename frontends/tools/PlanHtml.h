//===- PlanHtml.h - reckon plan --format html -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_PLANHTML_H
#define RECKON_FRONTENDS_TOOLS_PLANHTML_H

#include "passes/search/Report.h"

namespace reckon {

/// The page's name in a plan directory.
inline constexpr const char *kReportPage = "report.html";

/// The page, also written to a plan directory.
std::string planHtml(const search::ReportInput &input);

} // namespace reckon

#endif // RECKON_FRONTENDS_TOOLS_PLANHTML_H
