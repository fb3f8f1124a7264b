//===- Search.cpp - choosing how a job is spread --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Search.h"

#include "passes/search/Assign.h"
#include "passes/search/Evaluate.h"
#include "passes/search/Explain.h"
#include "passes/search/Goodput.h"
#include "passes/search/Outer.h"
#include "passes/search/Synthesized.h"
#include "runtime/base/Activity.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

static void record(SearchResult &result, const Counts &counts) {
  result.space = counts.space;
  result.evaluated = counts.limits + counts.feasible;
  result.feasible = counts.feasible;
  result.rejected = {.divisibility = counts.divisibility,
                     .representation = counts.representation,
                     .compilable = counts.compilable,
                     .bound = counts.bound,
                     .limits = counts.limits,
                     .memory = counts.memory,
                     .bubble = counts.bubble,
                     .hostMemory = counts.hostMemory};
  std::map<std::string, int64_t> reasons = counts.forbidden;
  for (const auto &[why, count] : counts.misfits)
    reasons[why.str()] += count;
  result.reasons.assign(reasons.begin(), reasons.end());
}

/// What the loop over all combinations proved.
static Proved enumerationProof(const Counts &counts,
                               const ObjectiveValue &best) {
  return {.what = "outer",
          .method = "enumeration",
          .optimal = true,
          .bound = best.value,
          .gap = 0,
          .unit = best.unit,
          .text = "all " + std::to_string(counts.space) +
                  " combinations were evaluated or excluded by a bound"};
}

SearchResult search::search(const Spec &spec, const SearchOptions &options) {
  Evaluator evaluator(spec);
  Space space(spec);
  SearchResult result;
  OuterOptions outer{.top = options.top,
                     .distinct = options.distinct,
                     .prune = options.prune,
                     .objective = *spec.search.objective};
  OuterResult found = searchOuter(space, evaluator, evaluator.bounds(), outer);
  record(result, found.counts);
  if (found.best.empty()) {
    result.infeasible = Infeasible{};
    return result;
  }
  for (const Ranked &ranked : found.best)
    result.candidates.push_back(evaluator.candidate(ranked.choice));
  result.proof.parts.push_back(enumerationProof(
      found.counts, objectiveValue(spec, result.candidates.front())));
  result.proof.optimal = true;
  result.proof.bound = result.proof.parts.front().bound;
  result.proof.space = "even layouts";
  if (options.runnable && !result.candidates.front().notRunnable.empty() &&
      model::whyNotCompilable(evaluator.job().model).empty()) {
    Spec compilable = spec;
    compilable.search.space.value = SearchSpace::Compilable;
    SearchOptions one = options;
    one.top = 1;
    one.runnable = false;
    SearchResult other = search::search(compilable, one);
    if (!other.candidates.empty())
      result.runnable = other.candidates.front();
  }
  return result;
}

SearchResult search::search(const Spec &spec, int64_t top) {
  return search::search(spec, SearchOptions{.top = top});
}

/// Certifies the schedule of the first candidate.
static void proveSchedule(const Spec &spec, const SearchOptions &options,
                          SearchResult &result) {
  const Candidate &best = result.candidates.front();
  if (best.choice.pp == 1)
    return;
  Activity activity("schedule");
  double maxBubble = *spec.constraints.maxBubble;
  if (best.choice.schedule == PipelineSchedule::Synthesized)
    result.schedule = synthesizeSchedules(spec, result);
  else
    result.schedule = planSchedule(best.choice, {}, maxBubble);
  result.proof.parts.push_back(provedSchedule(*result.schedule));
  if (!options.smtFolder.empty())
    result.smtStatus = dumpScheduleSmt(*result.schedule, options.smtFolder);
}

SearchResult search::searchAndExplain(const Spec &spec,
                                      const SearchOptions &options) {
  SearchResult result = search::search(spec, options);
  if (result.infeasible) {
    explainInfeasible(spec, result);
  } else {
    proveSchedule(spec, options, result);
    if (options.refine)
      refine(spec, result);
  }
  return result;
}

SearchResult search::searchAndExplain(const Spec &spec, int64_t top) {
  return searchAndExplain(spec, SearchOptions{.top = top});
}

std::string Proof::sentence() const {
  if (optimal)
    return "optimal in this space (" + space + ")";
  char text[160];
  std::string unit = parts.empty() ? "s" : parts.front().unit;
  std::snprintf(text, sizeof text,
                unit == "s" ? "within %.2g %%, bound %.6g %s"
                            : "within %.2g %%, bound %.0f %s",
                100 * gap, bound, unit.c_str());
  return std::string(text) + " (" + space + ")";
}
