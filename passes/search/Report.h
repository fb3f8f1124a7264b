//===- Report.h - what a search found, for people and programs ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_REPORT_H
#define RECKON_PASSES_SEARCH_REPORT_H

#include "passes/search/Neighbours.h"
#include "passes/search/Pareto.h"
#include "passes/search/Search.h"

#include <nlohmann/json.hpp>

#include <string>

namespace reckon::search {

struct ReportInput {
  const Spec &spec;
  const SearchResult &result;
  double seconds = 0;                  ///< the search took
  std::vector<Neighbour> neighbours{}; ///< of the choice
  const WhyNot *whyNot = nullptr;
  std::vector<ParetoRow> pareto{}; ///< empty when not asked for
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

/// What each neighbour of the choice would cost, or the limit it breaks.
std::string neighboursText(const std::vector<Neighbour> &all);
nlohmann::ordered_json neighboursJson(const std::vector<Neighbour> &all);

/// By how much what was asked about loses against the first candidate, or on
/// which limit. `changed` is the spec with it.
std::string whyNotText(const WhyNot &why, const SearchResult &result,
                       const Spec &spec, const Spec &changed);
nlohmann::ordered_json whyNotJson(const WhyNot &why,
                                  const SearchResult &result);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_REPORT_H
