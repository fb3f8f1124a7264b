//===- Report.h - the HTML report -----------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Made from the JSON report, so that both say the same, and from a file alone
// when need be. Pictures that need more than the JSON holds are handed in.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_REPORT_REPORT_H
#define RECKON_PASSES_REPORT_REPORT_H

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace reckon::report {

/// Complete <svg> elements; empty ones leave their section out.
struct Pictures {
  std::string schedule;       ///< ranks over time
  std::string memoryOverTime; ///< of a rank of each stage
};

/// One self-contained HTML page (no scripts, nothing loaded) from a report of
/// the schema `reckon.plan/1`. Keys that are absent leave their part out.
/// `spec` is the YAML text that was planned, `warnings` lines about it.
std::string reportHtml(const nlohmann::ordered_json &report,
                       const Pictures &pictures, const std::string &spec,
                       const std::vector<std::string> &warnings);

} // namespace reckon::report

#endif // RECKON_PASSES_REPORT_REPORT_H
