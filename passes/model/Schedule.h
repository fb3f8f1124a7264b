//===- Schedule.h - pipeline schedules as orders of compute actions -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A schedule is an order of forwards and backwards for every stage. All else
// (messages, slots, predicted times, the idle share) follows from the orders.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_SCHEDULE_H
#define RECKON_PASSES_MODEL_SCHEDULE_H

#include "passes/model/Choice.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::model {

/// `gpipe`, `1f1b`: the spec's names.
const char *scheduleName(ScheduleKind kind);
std::optional<ScheduleKind> parseSchedule(std::string_view name);

/// One forward ('F') or whole backward ('B') of a stage on a micro-batch.
struct ComputeAction {
  char pass = 'F';
  int64_t microBatch = 0;
  bool operator==(const ComputeAction &) const = default;
};

/// The order in which `stage` of `stages` runs its 2m actions.
/// GPipe: F0..F(m-1), B0..B(m-1). 1F1B: min(stages-1-stage, m) forwards, then
/// one forward and one backward in turn, then the remaining backwards
/// (Narayanan et al., 2021).
std::vector<ComputeAction> scheduleOrder(ScheduleKind kind, int64_t stages,
                                         int64_t microBatches, int64_t stage);

/// The most micro-batches whose forward has run and whose backward has not:
/// m for GPipe, min(m, stages - stage) for 1F1B.
int64_t peakInFlight(const std::vector<ComputeAction> &order);

/// Durations of one stage, in seconds or any other unit.
struct StageDurations {
  double forward = 1;
  double backward = 2;
};

struct TimedAction {
  ComputeAction action;
  double start = 0;
  double end = 0;
};

/// When everything starts, each stage running its order as early as its inputs
/// allow.
struct Timetable {
  std::vector<std::vector<TimedAction>> stages;
  double makespan = 0;
  std::vector<double> busy; ///< per stage
  /// (makespan - busiest stage's work) / busiest stage's work: (p-1)/m when
  /// all stages take equally long and messages take no time.
  double bubbleFraction = 0;
};

/// Simulates one step. A message between neighbours takes `transfer` and does
/// not hold up its sender. `durations` has one entry a stage.
Timetable simulateSchedule(ScheduleKind kind, int64_t microBatches,
                           std::span<const StageDurations> durations,
                           double transfer = 0);

/// Timetable::makespan in a time that does not grow with the micro-batches:
/// past some multiple of the stages every further one costs the same.
double scheduleMakespan(ScheduleKind kind, int64_t microBatches,
                        std::span<const StageDurations> durations,
                        double transfer = 0);

/// Timetable::bubbleFraction for equal stages and messages that take no time:
/// (p-1)/m for both schedules. This is the `bubble_fraction` of reports and
/// what `max_bubble` bounds.
double scheduleBubble(ScheduleKind kind, int64_t stages, int64_t microBatches);

/// The table of torch.distributed.pipelining: one row a stage, one column a
/// unit of time with F = 1 and B = 2, cells such as `0F3`, empty where the
/// stage idles; the second cell of a backward is empty too.
std::string scheduleCsv(ScheduleKind kind, int64_t stages,
                        int64_t microBatches);

/// The same for people: a row a stage, `F` cells with the micro-batch's number
/// and `B` cells twice as wide. Cut to `maxColumns` characters, saying so.
std::string schedulePicture(ScheduleKind kind, int64_t stages,
                            int64_t microBatches, size_t maxColumns = 100);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_SCHEDULE_H
