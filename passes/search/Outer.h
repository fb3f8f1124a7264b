//===- Outer.h - the best of all combinations, with proof -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Walks the nodes of a space best bound first and stops at the first one whose
// bound is above the worst choice kept: everything after it is worse, so the
// loop is the proof. Every combination is counted under exactly one head.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_OUTER_H
#define RECKON_PASSES_SEARCH_OUTER_H

#include "passes/search/Cost.h"
#include "passes/search/Space.h"

#include <tuple>

namespace reckon::search {

/// Upper limits that a choice must keep.
struct Bounds {
  uint64_t memoryBytes = 0; ///< of total - reserve
  double maxBubble = 0;
  std::optional<uint64_t> hostBytes; ///< of a node

  static Bounds of(const Spec &spec);
};

/// A choice with what it is ranked by.
struct Ranked {
  model::Choice choice;
  double seconds = 0;
  double wall = 0; ///< CostModel::wallStep(), where the objective asks for it
  Peak peak;
  double bubble = 0;
  uint64_t hostBytes = 0;
  /// Of the objective: whole nanoseconds of a step, of a step with its share
  /// of failures and checkpoints, or bytes. Whole, so that the order does not
  /// hang on the last bit.
  int64_t primary = 0;
  int64_t secondary = 0;

  /// Ties are broken by the degrees, in the order of the ranks.
  auto key() const {
    const model::Choice &c = choice;
    return std::tuple(primary, secondary, c.tp, c.cp, c.pp, c.v, c.ep, c.etp,
                      c.zero, c.recompute, c.microBatch,
                      c.schedule == PipelineSchedule::GPipe, c.schedule,
                      c.sequenceParallel, c.contextMethod, c.layout,
                      c.recomputeLayers);
  }
};

/// space = divisibility + representation + compilable + limits + feasible +
/// bound.
struct Counts {
  int64_t space = 0;
  int64_t divisibility = 0;
  int64_t representation = 0;
  int64_t compilable = 0;
  int64_t limits = 0;   ///< break memory, bubble or host memory
  int64_t feasible = 0; ///< keep all limits
  /// Proved no better than the choices kept, so that not all was asked of them.
  int64_t bound = 0;
  // Of `limits`, by limit; one combination may break several.
  int64_t memory = 0, bubble = 0, hostMemory = 0;
  int64_t nodes = 0, nodesOpened = 0;
  /// Space::assignments() of all nodes, where OuterOptions asks for them.
  double assignments = 0;
  std::map<Misfit, int64_t> misfits;
  std::map<std::string, int64_t> forbidden; ///< by the representation's reason
};

struct OuterOptions {
  int64_t top = 1;
  /// Keep one choice for each set of degrees and micro-batch: the best.
  bool distinct = true;
  /// Stop at the bound. Without it every combination is evaluated.
  bool prune = true;
  /// Stop at the first choice that keeps all limits: whether there is one.
  bool any = false;
  Objective objective = Objective::StepTime;
  bool countAssignments = false;
  /// Called for every evaluated choice that breaks a limit. Turns the skipping
  /// of nodes whose states alone do not fit off.
  std::function<void(const Ranked &, LimitMask)> broken;
  /// Called for every leaf whose node may hold a better choice, whether the
  /// leaf itself fits or not, with the seconds that a step must stay below to
  /// be better than the best choice so far.
  std::function<void(const model::Choice &, double below)> opened;
};

struct OuterResult {
  std::vector<Ranked> best; ///< best first
  Counts counts;
};

/// Spaces up to this size are evaluated whole, for their counts.
inline constexpr int64_t kWholeSpace = 20000;

OuterResult searchOuter(const Space &space, CostModel &cost,
                        const Bounds &bounds, const OuterOptions &options);

/// Ranks by the objective. TimeToTrain and Cost order the choices of one
/// machine alike, since its hours all cost the same; choices that make no
/// progress come after all that do, by their step.
void rank(Ranked &ranked, Objective objective);

/// Of Ranked::primary of choices whose step takes `seconds` or more, at most.
int64_t leastKey(CostModel &cost, double seconds, Objective objective);

/// What makes two choices distinct for a person.
inline auto degreesOf(const model::Choice &c) {
  return std::tuple(c.tp, c.cp, c.pp, c.v, c.ep, c.etp, c.microBatch);
}

/// Whether the objective counts failures and checkpoints.
inline bool countsFailures(Objective objective) {
  return objective == Objective::TimeToTrain || objective == Objective::Cost;
}

/// The masks of every combination with the user's restrictions lifted.
MaskTable violationMasks(const Spec &spec, CostModel &cost);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_OUTER_H
