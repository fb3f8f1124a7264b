//===- Refine.cpp - the best assignment of all choices --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/assign/Refine.h"

#include "passes/search/Space.h"
#include "passes/search/assign/Benders.h"

#include <algorithm>
#include <set>

using namespace reckon;
using namespace reckon::search;

Refinery::Refinery(const Spec &spec, Evaluator &evaluator, const Space &space)
    : evaluator_(evaluator), space_(space), freedom_(assignFreedom(spec)),
      objective_(*spec.search.objective),
      active_((freedom_.layout || freedom_.recompute) &&
              objective_ != Objective::Memory) {}

/// Orders that come from elsewhere, or are made for a choice's own stages.
static bool ordered(const model::Choice &choice) {
  return choice.pp > 1 && (choice.schedule == PipelineSchedule::Csv ||
                           choice.schedule == PipelineSchedule::Synthesized);
}

void Refinery::offer(const model::Choice &leaf, double cutoff) {
  // Layer by layer, `full` is what `none` becomes.
  if (ordered(leaf))
    return;
  if (freedom_.recompute && leaf.recompute == Recompute::Full)
    return;
  if (leaf.pp == 1 &&
      (!freedom_.recompute || leaf.recompute == Recompute::Selective))
    return;
  double bound = evaluator_.assignmentBound(leaf);
  if (bound < cutoff)
    waiting_.push_back({bound, leaf});
}

int64_t Refinery::leastKey(double seconds) {
  return search::leastKey(evaluator_, seconds, objective_);
}

/// Steps that are not below this cannot rank before `ranked`.
double Refinery::secondsBelow(const Ranked &ranked) {
  if (!countsFailures(objective_))
    return ranked.seconds;
  double low = 0, high = ranked.wall;
  for (int i = 0; i < 60; ++i) {
    double middle = (low + high) / 2;
    (leastKey(middle) <= ranked.primary ? low : high) = middle;
  }
  return high;
}

/// The choice with its key, when it keeps every limit.
std::optional<Ranked> Refinery::ranked(const model::Choice &choice,
                                       double step) {
  Verdict verdict = evaluator_.judge(choice);
  if (!verdict.fits() || !space_.refuses(choice).empty() ||
      !evaluator_.forbids(choice).empty())
    return std::nullopt;
  Ranked ranked{.choice = choice,
                .seconds = step,
                .peak = {verdict.peakArena, verdict.peakStage},
                .bubble = verdict.bubble,
                .hostBytes = verdict.hostBytes};
  if (countsFailures(objective_))
    ranked.wall = evaluator_.wallStep(choice, step);
  rank(ranked, objective_);
  return ranked;
}

RefineResult Refinery::run(const std::vector<Ranked> &uniform, int64_t top) {
  RefineResult result;
  std::vector<Ranked> all = uniform;
  auto first = [](const Ranked &a, const Ranked &b) {
    return a.key() < b.key();
  };
  Ranked best = *std::min_element(all.begin(), all.end(), first);
  // Seconds below which no assignment of what was solved is.
  double proved = secondsBelow(best);
  auto solve = [&](const model::Choice &choice, double beat, bool z3 = false) {
    Assigned found =
        assignLayers(choice, evaluator_, evaluator_.limitBytes(),
                     {.freedom = freedom_, .beat = beat, .z3 = z3});
    if (found.choice)
      if (std::optional<Ranked> better = ranked(*found.choice, found.step)) {
        all.push_back(*better);
        if (better->key() < best.key())
          best = *better;
      }
    ++result.solved;
    return found.bound;
  };
  // Good choices first: what they become spares the others.
  for (const Ranked &each : uniform)
    if (!ordered(each.choice))
      proved = std::min(proved, solve(each.choice, secondsBelow(each)));
  std::stable_sort(
      waiting_.begin(), waiting_.end(),
      [](const Waiting &a, const Waiting &b) { return a.bound < b.bound; });
  for (const Waiting &each : waiting_) {
    double beat = secondsBelow(best);
    if (each.bound >= beat)
      break;
    proved = std::min(proved, solve(each.choice, beat));
  }
  proved = std::min(proved, secondsBelow(best));
  // What no program sees: other arrangements over the chunks of the best, and
  // what its ranks idle beside the longest path.
  if (best.choice.pp > 1 && freedom_.layout && hasCuts(best.choice)) {
    double dynamic = best.seconds;
    double bound = solve(best.choice, secondsBelow(best), true);
    result.arranged = Arranged{.gained = dynamic - best.seconds,
                               .bound = std::min(bound, best.seconds)};
    proved = std::min(proved, secondsBelow(best));
  }
  result.boundSeconds = proved;
  bool failures = countsFailures(objective_);
  double least = failures ? evaluator_.wallStepBound(proved) : proved;
  result.gap = std::max(0.0, (failures ? best.wall : best.seconds) / least - 1);

  std::sort(all.begin(), all.end(), first);
  for (Ranked &each : all) {
    bool known = std::any_of(
        result.best.begin(), result.best.end(), [&](const Ranked &kept) {
          return degreesOf(kept.choice) == degreesOf(each.choice);
        });
    if (!known && static_cast<int64_t>(result.best.size()) < top)
      result.best.push_back(std::move(each));
  }
  return result;
}
