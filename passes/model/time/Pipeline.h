//===- Pipeline.h - makespan of a step from the stages' times -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_PIPELINE_H
#define RECKON_PASSES_MODEL_TIME_PIPELINE_H

#include "passes/model/Choice.h"

#include <span>

namespace reckon::model {

/// Seconds that one pipeline rank spends on one micro-batch, all its chunks.
struct RankLoad {
  double forward = 0;
  double backward = 0; ///< input and weight gradients, recomputation
  double weight = 0;   ///< part of it that zero-bubble schedules delay
  double input() const { return backward - weight; }
  double total() const { return forward + backward; }
};

/// The rank on which virtual stage `stage` of p * v runs: stage % p, but for
/// the V-shaped schedules, where the second chunk goes back.
int64_t pipelineRank(ScheduleKind kind, int64_t p, int64_t stage);

/// Seconds of one step that the busiest rank idles: closed forms that equal
/// the simulation of each order when ranks are alike (tests/unit/time), with m
/// micro-batches and v chunks a rank. Messages take no time here.
double pipelineBubble(ScheduleKind kind, int64_t v, int64_t m,
                      std::span<const RankLoad> ranks);

/// Messages on the critical path of one step, each of which lengthens it: two
/// a micro-batch and hop of the ramps, and of the steady state the share
/// (1 - hidden) that does not run beside compute. An interleaved schedule
/// hides the steady state.
double exposedMessages(ScheduleKind kind, int64_t p, int64_t v, int64_t m,
                       double hidden);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_PIPELINE_H
