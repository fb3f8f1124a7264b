//===- Cost.h - the one cost function of the search -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Enumeration, bounds, stage assignment and reports ask this interface and
// nothing else, so that no two of them can disagree. Evaluator joins the
// memory and time models; tests put small tables in its place.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_COST_H
#define RECKON_PASSES_SEARCH_COST_H

#include "passes/model/Job.h"

#include <cstdint>
#include <string>

namespace reckon::search {

struct Peak {
  uint64_t bytes = 0; ///< total - reserve
  int64_t rank = 0;   ///< the first pipeline rank that needs them
};

class CostModel {
public:
  virtual ~CostModel() = default;

  /// Seconds of one optimizer step.
  virtual double step(const model::Choice &choice) = 0;
  /// The same as reports show it, where step() is quick and only near.
  virtual double timed(const model::Choice &choice) { return step(choice); }
  /// At most timed(), and quick.
  virtual double timedBound(const model::Choice &choice) {
    return step(choice);
  }
  /// Bytes of one pipeline rank without the reserve.
  virtual uint64_t memory(const model::Choice &choice, int64_t rank) = 0;
  /// The largest memory() of all pipeline ranks.
  virtual Peak peak(const model::Choice &choice) = 0;
  /// The same up to `limit`; above it any rank that exceeds it.
  virtual Peak peakUpTo(const model::Choice &choice, uint64_t) {
    return peak(choice);
  }
  /// Idle over ideal time of the schedule, equal stages.
  virtual double bubble(const model::Choice &choice) = 0;
  /// Bytes of a node's host memory.
  virtual uint64_t hostBytes(const model::Choice &choice) = 0;
  /// Why the representation cannot express the choice; empty when it can.
  virtual std::string forbids(const model::Choice &choice) = 0;

  /// Expected wall seconds for each step of a choice whose step takes
  /// `stepSeconds`, failures and checkpoints included; infinite where more is
  /// lost than done. By default nothing fails.
  virtual double wallStep(const model::Choice &, double stepSeconds) {
    return stepSeconds;
  }
  /// At most wallStep() of any choice whose step takes `stepSeconds` or more.
  virtual double wallStepBound(double stepSeconds) { return stepSeconds; }

  /// At most step() of any completion of `outer`, of which tp, cp, pp, dp, ep,
  /// etp and the micro-batches are set and the rest is open.
  virtual double stepBound(const model::Choice &outer) = 0;
  /// At most step() of `way`, of which all but the layout, ZeRO and the
  /// recomputation is set, with any of those.
  virtual double wayBound(const model::Choice &way) = 0;
  /// At most step() of `choice` with any layout and any recomputation.
  virtual double assignmentBound(const model::Choice &choice) = 0;
  /// At most peak() of any completion of `outer`.
  virtual uint64_t memoryBound(const model::Choice &outer) = 0;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_COST_H
