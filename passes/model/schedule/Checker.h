//===- Checker.h - an independent judge of schedules ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Shares no code with what makes schedules: it is given a list of claims, in
// any order, and believes none of them.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_SCHEDULE_CHECKER_H
#define RECKON_PASSES_MODEL_SCHEDULE_CHECKER_H

#include "passes/model/Schedule.h"

namespace reckon::model {

/// "Rank `rank` runs `pass` of virtual stage `stage` on `microBatch` from
/// `start` to `end`."
struct ClaimedAction {
  int64_t rank = 0;
  int64_t stage = 0;
  char pass = 'F'; ///< F, and B or both I and W
  int64_t microBatch = 0;
  double start = 0;
  double end = 0;
};

struct ScheduleClaim {
  int64_t ranks = 1;
  int64_t stages = 1;
  int64_t microBatches = 1;
  std::vector<ClaimedAction> actions;
};

/// What the schedule must keep to.
struct ClaimTerms {
  std::vector<StageDurations> durations; ///< a virtual stage each
  std::vector<int64_t> rankOfStage;      ///< a virtual stage each
  double transfer = 0;                   ///< between different ranks
  /// A rank each: most stashes at one moment, from the start of F to the end
  /// of W (or B), whatever the chunk. Empty: no bound.
  std::vector<int64_t> slots;
  std::optional<double> horizon; ///< all ends
  std::optional<double> span;    ///< of every rank, first start to last end
  double tolerance = 1e-9;       ///< of times, relative to the horizon or 1
};

ScheduleClaim claimOf(const PipelineOrders &orders, const Timetable &table);

/// Success if every stage runs every micro-batch once and on its rank, for as
/// long as it must, one action a rank at a time, after what it needs; if no
/// rank holds more than its slots; and if all ends in time. Else what is wrong,
/// with names and times.
Status checkClaim(const ScheduleClaim &claim, const ClaimTerms &terms);

/// Bubble of a claim: (last end - busiest work) / busiest work.
double claimBubble(const ScheduleClaim &claim);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_SCHEDULE_CHECKER_H
