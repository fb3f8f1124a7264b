//===- Report.h - what a search found, for people and programs ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_REPORT_H
#define RECKON_PASSES_SEARCH_REPORT_H

#include "passes/search/Search.h"

#include <nlohmann/json.hpp>

#include <string>

namespace reckon::search {

struct ReportInput {
  const Spec &spec;
  const SearchResult &result;
  double seconds = 0; ///< the search took
};

/// `reckon.plan/1` of contract section 3; ends with a newline.
std::string reportJson(const ReportInput &input);

/// The `parallelism` object of one choice: also what a plan's manifest records.
nlohmann::ordered_json choiceJson(const model::Choice &choice);

/// For people: the choice, memory, time, timetable, alternatives.
std::string reportText(const ReportInput &input);

/// Why nothing fits and what would, in sentences; needs `infeasible`.
std::string infeasibleText(const ReportInput &input);

/// `tp 8, pp 4, dp 32, zero 1, b 1, m 16, full, 1f1b`.
std::string choiceLine(const model::Choice &choice);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_REPORT_H
