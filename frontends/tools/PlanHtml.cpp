//===- PlanHtml.cpp - reckon plan --format html ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/PlanHtml.h"

#include "passes/report/Report.h"

using namespace reckon;

std::string reckon::planHtml(const search::ReportInput &input) {
  std::vector<std::string> warnings;
  for (const Diagnostic &warning : input.spec.warnings)
    warnings.push_back(warning.str());
  report::Pictures pictures;
  return report::reportHtml(
      nlohmann::ordered_json::parse(search::reportJson(input)), pictures,
      input.spec.canonical, warnings);
}
