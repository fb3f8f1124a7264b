//===- Refine.h - the best assignment of all choices ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_REFINE_H
#define RECKON_PASSES_SEARCH_ASSIGN_REFINE_H

#include "passes/search/assign/Assign.h"

namespace reckon::search {

/// What Z3 says of the other arrangements of a rank's layers over its chunks.
struct Arranged {
  double gained = 0; ///< seconds of the step
  double bound = 0;  ///< no arrangement has a shorter step
};

struct RefineResult {
  /// Best first, one for each set of degrees and micro-batch, assigned layer by
  /// layer where that is faster.
  std::vector<Ranked> best;
  double boundSeconds = 0; ///< no assignment of any choice has a shorter step
  double gap = 0; ///< of what the objective ranks by: best over its bound, - 1
  int64_t solved = 0; ///< assignments
  /// Of the best choice, when it has several chunks a rank.
  std::optional<Arranged> arranged;
};

/// Collects, while the outer search runs, what might win once its layers are
/// assigned, and assigns them best bound first.
class Refinery {
public:
  Refinery(const Spec &spec, Evaluator &evaluator, const Space &space);

  /// Whether the spec leaves anything to assign.
  bool active() const { return active_; }
  /// OuterOptions::opened. `cutoff` is the step of the best choice so far.
  void offer(const model::Choice &leaf, double cutoff);
  /// `uniform`: the best evenly laid out choices, best first; not empty.
  RefineResult run(const std::vector<Ranked> &uniform, int64_t top);

private:
  struct Waiting {
    double bound;
    model::Choice choice;
  };
  std::optional<Ranked> ranked(const model::Choice &choice, double step);
  int64_t leastKey(double seconds);
  double secondsBelow(const Ranked &ranked);

  Evaluator &evaluator_;
  const Space &space_;
  AssignFreedom freedom_;
  Objective objective_;
  bool active_;
  std::vector<Waiting> waiting_;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_REFINE_H
