//===- Simulate.cpp - when every action of a schedule starts --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

namespace {

/// Runs orders as early as their inputs allow, rank by rank until each waits.
class Simulation {
public:
  Simulation(const PipelineOrders &orders,
             std::span<const StageDurations> durations, double transfer,
             bool keepActions)
      : orders_(orders), durations_(durations), keep_(keepActions) {
    int64_t stages = orders.stages();
    RECKON_CHECK(static_cast<int64_t>(durations.size()) == stages);
    // Not done yet: later than any time that is compared with it.
    forward_.assign(stages * orders.m, kNever);
    gradient_ = forward_;
    cursor_.assign(orders.p, 0);
    clock_.assign(orders.p, 0);
    fromBelow_.assign(stages, 0);
    for (int64_t stage = 1; stage < stages; ++stage)
      if (orders.rankOfStage[stage] != orders.rankOfStage[stage - 1])
        fromBelow_[stage] = transfer;
    table_.ranks.resize(orders.p);
    table_.busy.assign(orders.p, 0);
    table_.span.assign(orders.p, 0);
    first_.assign(orders.p, kNever);
    if (keep_)
      for (int64_t rank = 0; rank < orders.p; ++rank)
        table_.ranks[rank].reserve(orders.ranks[rank].size());
  }

  Result<Timetable> run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (int64_t rank = 0; rank < orders_.p; ++rank)
        progress |= advance(rank);
    }
    for (int64_t rank = 0; rank < orders_.p; ++rank)
      if (cursor_[rank] < orders_.ranks[rank].size())
        return makeError(ExitCode::BadSpec, blocked());
    finish();
    return std::move(table_);
  }

private:
  static constexpr double kNever = -1;

  /// When the inputs of the action are there, or kNever.
  double ready(int64_t stage, ComputeAction action) const {
    int64_t m = orders_.m, at = stage * m + action.microBatch;
    switch (action.pass) {
    case 'F':
      if (stage == 0)
        return 0;
      return forward_[at - m] < 0 ? kNever
                                  : forward_[at - m] + fromBelow_[stage];
    case 'W':
      return gradient_[at];
    default:
      if (stage + 1 == orders_.stages())
        return forward_[at];
      if (forward_[at] < 0 || gradient_[at + m] < 0)
        return kNever;
      return std::max(forward_[at], gradient_[at + m] + fromBelow_[stage + 1]);
    }
  }

  bool advance(int64_t rank) {
    const std::vector<ComputeAction> &order = orders_.ranks[rank];
    size_t before = cursor_[rank];
    double clock = clock_[rank];
    for (; cursor_[rank] < order.size(); ++cursor_[rank]) {
      ComputeAction action = order[cursor_[rank]];
      int64_t stage = orders_.stage(rank, action.chunk);
      double inputs = ready(stage, action);
      if (inputs < 0)
        break;
      double start = std::max(clock, inputs);
      double length = durations_[stage].of(action.pass);
      clock = start + length;
      int64_t at = stage * orders_.m + action.microBatch;
      if (action.pass == 'F')
        forward_[at] = clock;
      else if (action.pass != 'W')
        gradient_[at] = clock;
      table_.busy[rank] += length;
      if (cursor_[rank] == 0)
        first_[rank] = start;
      if (keep_)
        table_.ranks[rank].push_back({action, start, clock});
    }
    clock_[rank] = clock;
    return cursor_[rank] != before;
  }

  std::string blocked() const {
    std::string text = "expected a schedule whose ranks all finish, got one "
                       "whose ranks wait for each other:";
    for (int64_t rank = 0; rank < orders_.p; ++rank)
      if (cursor_[rank] < orders_.ranks[rank].size()) {
        ComputeAction action = orders_.ranks[rank][cursor_[rank]];
        text += " rank " + std::to_string(rank) + " at " +
                std::to_string(orders_.stage(rank, action.chunk)) +
                action.pass + std::to_string(action.microBatch) + ",";
      }
    text.pop_back();
    return text + "; move these actions behind what they need";
  }

  void finish() {
    double busiest = 0;
    for (int64_t rank = 0; rank < orders_.p; ++rank) {
      table_.makespan = std::max(table_.makespan, clock_[rank]);
      busiest = std::max(busiest, table_.busy[rank]);
      if (orders_.ranks[rank].empty())
        continue;
      table_.span[rank] = clock_[rank] - first_[rank];
      table_.idleInSpan =
          std::max(table_.idleInSpan, table_.span[rank] - table_.busy[rank]);
    }
    if (busiest > 0)
      table_.bubbleFraction = (table_.makespan - busiest) / busiest;
  }

  const PipelineOrders &orders_;
  std::span<const StageDurations> durations_;
  bool keep_;
  std::vector<double> forward_, gradient_; ///< ends, by stage and micro-batch
  std::vector<double> fromBelow_; ///< transfer between stage-1 and stage
  std::vector<size_t> cursor_;
  std::vector<double> clock_, first_;
  Timetable table_;
};

/// Micro-batches after which the steady state of a schedule looks the same
/// again, when messages are fast.
int64_t periodOf(const ScheduleShape &shape) {
  bool grouped = shape.v > 1 && (shape.kind == ScheduleKind::Interleaved ||
                                 shape.kind == ScheduleKind::ZbH1);
  return grouped ? shape.group : 1;
}

} // namespace

Result<Timetable>
model::simulateOrders(const PipelineOrders &orders,
                      std::span<const StageDurations> durations,
                      double transfer, bool keepActions) {
  return Simulation(orders, durations, transfer, keepActions).run();
}

Timetable model::simulateSchedule(const ScheduleShape &shape,
                                  std::span<const StageDurations> durations,
                                  double transfer, bool keepActions) {
  PipelineOrders orders = makeOrders(shape);
  Result<Timetable> table =
      simulateOrders(orders, durations, transfer, keepActions);
  RECKON_CHECK(table.ok());
  return std::move(*table);
}

Timetable model::simulateSchedule(ScheduleKind kind, int64_t microBatches,
                                  std::span<const StageDurations> durations,
                                  double transfer) {
  return simulateSchedule(
      {kind, static_cast<int64_t>(durations.size()), 1, microBatches},
      durations, transfer);
}

double model::scheduleMakespan(const ScheduleShape &given,
                               std::span<const StageDurations> durations,
                               double transfer) {
  // The group follows from m; a shorter step must keep it.
  ScheduleShape shape = given;
  if (shape.group == 0)
    shape.group = defaultGroup(shape.p, shape.m);
  if (shape.v == 1)
    shape.group = 0;
  auto makespan = [&](int64_t m) {
    ScheduleShape shorter = shape;
    shorter.m = m;
    return simulateSchedule(shorter, durations, transfer, false).makespan;
  };
  // With slow messages the steady state repeats only after as many
  // micro-batches as are in flight between two neighbours, some number up to
  // p. A window of 12 p holds whole periods of all of them up to p = 4, and
  // enough periods of the others.
  int64_t period = periodOf(shape);
  int64_t window = (12 * shape.p + period - 1) / period * period;
  int64_t enough = 2 * window + shape.m % period;
  if (shape.m <= enough)
    return makespan(shape.m);
  double base = makespan(enough);
  double perPeriod =
      (base - makespan(enough - window)) / static_cast<double>(window / period);
  return base + perPeriod * static_cast<double>((shape.m - enough) / period);
}

double model::scheduleMakespan(ScheduleKind kind, int64_t microBatches,
                               std::span<const StageDurations> durations,
                               double transfer) {
  return scheduleMakespan(
      {kind, static_cast<int64_t>(durations.size()), 1, microBatches},
      durations, transfer);
}

double model::busiestWork(const ScheduleShape &shape,
                          std::span<const StageDurations> durations) {
  std::vector<double> work(shape.p, 0);
  for (int64_t stage = 0; stage < shape.stages(); ++stage)
    work[rankOfStage(shape.kind, shape.p, shape.v, stage)] +=
        durations[stage].forward + durations[stage].backward;
  return static_cast<double>(shape.m) *
         *std::max_element(work.begin(), work.end());
}
