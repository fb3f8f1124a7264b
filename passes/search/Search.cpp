//===- Search.cpp - choosing how a job is spread --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Evaluate.h"
#include "passes/search/Explain.h"
#include "passes/search/Space.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::search;

namespace {

/// What ranks a choice.
struct Ranked {
  model::Choice choice;
  int64_t stepNs;
  uint64_t peakArena;

  /// Whole nanoseconds, so that the order does not hang on the last bit.
  auto key() const {
    return std::tuple(stepNs, peakArena, choice.tp, choice.pp, choice.zero,
                      choice.recompute, choice.microBatch,
                      choice.schedule == PipelineSchedule::GPipe);
  }
};

} // namespace

SearchResult search::search(const Spec &spec, int64_t top) {
  Evaluator evaluator(spec);
  SearchResult result;
  std::vector<Ranked> feasible;
  Rejections rejections;

  SpaceVisitor visitor;
  visitor.rejected = [&](int64_t count, const std::string &reason) {
    result.space += count;
    result.rejected.divisibility += count;
    rejections.addReason(reason);
  };
  visitor.choice = [&](const model::Choice &choice) {
    ++result.space;
    ++result.evaluated;
    Verdict verdict = evaluator.judge(choice);
    result.rejected.memory += !verdict.memoryFits;
    result.rejected.bubble += !verdict.bubbleFits;
    if (!verdict.fits()) {
      rejections.add(choice, verdict);
      return;
    }
    double step = evaluator.time(choice).step;
    feasible.push_back({choice, std::llround(step * 1e9), verdict.peakArena});
  };
  enumerate(spec, visitor);

  result.feasible = static_cast<int64_t>(feasible.size());
  std::sort(feasible.begin(), feasible.end(),
            [](const Ranked &a, const Ranked &b) { return a.key() < b.key(); });
  for (size_t i = 0; i < feasible.size() && i < static_cast<size_t>(top); ++i)
    result.candidates.push_back(evaluator.candidate(feasible[i].choice));
  if (feasible.empty())
    result.infeasible = rejections.explain(evaluator);
  return result;
}

SearchResult search::searchAndExplain(const Spec &spec, int64_t top) {
  SearchResult result = search::search(spec, top);
  if (result.infeasible)
    result.infeasible->nearest = nearestChanges(spec, result);
  return result;
}
