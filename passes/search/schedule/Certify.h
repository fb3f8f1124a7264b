//===- Certify.h - Z3's word on the schedule of a plan -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_CERTIFY_H
#define RECKON_PASSES_SEARCH_SCHEDULE_CERTIFY_H

#include "passes/model/Schedule.h"

#include <optional>

namespace reckon::search {

/// What is to be certified: that a pipeline can run its step within the slots
/// that its memory has and by the horizon that its bubble limit leaves.
struct CertifyQuery {
  model::ScheduleShape shape;
  /// For `csv` and `synthesized`, whose orders no formula gives.
  std::optional<model::PipelineOrders> orders;
  /// A virtual stage each; empty for F = I = W = 1, which is what `max_bubble`
  /// is about (model::scheduleBubble).
  std::vector<model::StageDurations> durations;
  double transfer = 0;
  /// A rank each: stashes, of any chunk, that its memory holds at once, from
  /// the start of F to the end of W (or B). Empty: no bound.
  std::vector<int64_t> slots;
  double maxBubble = 0; ///< of (makespan - busiest work) / busiest work
  /// Steps of the solver; the same on every machine.
  uint64_t budget = 50'000'000;
};

struct Certificate {
  /// Z3 found start times that keep to all clauses, and the independent
  /// checker agreed.
  bool proved = false;
  /// Why not, as a sentence; empty when proved.
  std::string reason;
  /// "all micro-batches" or "repeating block".
  std::string method;

  model::ScheduleShape shape;
  std::vector<int64_t> slots;
  double busiestWork = 0; ///< in the unit of the durations, as are the others
  double horizon = 0;     ///< (1 + maxBubble) busiestWork
  double makespan = 0;    ///< of the earliest starts, all m micro-batches
  double bubble = 0;      ///< of the same
  double tick = 0;        ///< length of an integer time step

  /// Micro-batches of the instance that the solver saw. Of a repeating block:
  /// warm-up, one block, cool-down.
  int64_t instance = 0;
  int64_t blockMicroBatches = 0; ///< 0: nothing repeats
  double blockLength = 0;
  int64_t blockRuns = 0; ///< in the whole step

  uint64_t variables = 0, clauses = 0;
  uint64_t steps = 0; ///< Z3's resource count
};

/// Repeated queries of one process are answered from memory. Safe to call from
/// several threads.
const Certificate &certify(const CertifyQuery &query);

/// The query as SMT-LIB, for the `z3` program; empty when nothing reaches the
/// solver.
std::string certifySmtLib(const CertifyQuery &query);

/// One or two sentences for reports.
std::string describe(const Certificate &certificate);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_CERTIFY_H
