//===- Schedule.cpp - pipeline schedules as orders of compute actions -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include "runtime/base/Status.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

const char *model::scheduleName(ScheduleKind kind) { return toString(kind); }

std::optional<ScheduleKind> model::parseSchedule(std::string_view name) {
  for (ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::OneFOneB})
    if (name == scheduleName(kind))
      return kind;
  return std::nullopt;
}

std::vector<ComputeAction> model::scheduleOrder(ScheduleKind kind,
                                                int64_t stages,
                                                int64_t microBatches,
                                                int64_t stage) {
  RECKON_CHECK(0 <= stage && stage < stages && microBatches > 0);
  int64_t m = microBatches;
  int64_t warmUp =
      kind == ScheduleKind::GPipe ? m : std::min(stages - 1 - stage, m);
  std::vector<ComputeAction> order;
  order.reserve(2 * m);
  for (int64_t i = 0; i < warmUp; ++i)
    order.push_back({'F', i});
  for (int64_t i = 0; i < m - warmUp; ++i) {
    order.push_back({'F', warmUp + i});
    order.push_back({'B', i});
  }
  for (int64_t i = m - warmUp; i < m; ++i)
    order.push_back({'B', i});
  return order;
}

int64_t model::peakInFlight(const std::vector<ComputeAction> &order) {
  int64_t live = 0, peak = 0;
  for (const ComputeAction &action : order) {
    live += action.pass == 'F' ? 1 : -1;
    peak = std::max(peak, live);
  }
  return peak;
}

Timetable model::simulateSchedule(ScheduleKind kind, int64_t microBatches,
                                  std::span<const StageDurations> durations,
                                  double transfer) {
  int64_t p = durations.size(), m = microBatches;
  RECKON_CHECK(p > 0);
  std::vector<std::vector<ComputeAction>> orders(p);
  Timetable table;
  table.stages.resize(p);
  table.busy.resize(p);
  for (int64_t s = 0; s < p; ++s)
    orders[s] = scheduleOrder(kind, p, m, s);

  // Ends of forwards and backwards, negative while not done.
  std::vector<std::vector<double>> forward(p, std::vector<double>(m, -1));
  std::vector<std::vector<double>> backward = forward;
  std::vector<double> clock(p, 0);
  bool progress = true;
  while (progress) {
    progress = false;
    for (int64_t s = 0; s < p; ++s) {
      auto &done = table.stages[s];
      while (done.size() < orders[s].size()) {
        ComputeAction action = orders[s][done.size()];
        bool isForward = action.pass == 'F';
        int64_t from = isForward ? s - 1 : s + 1;
        double ready = 0;
        if (from >= 0 && from < p) {
          double end =
              (isForward ? forward : backward)[from][action.microBatch];
          if (end < 0)
            break;
          ready = end + transfer;
        }
        double start = std::max(clock[s], ready);
        double length =
            isForward ? durations[s].forward : durations[s].backward;
        clock[s] = start + length;
        (isForward ? forward : backward)[s][action.microBatch] = clock[s];
        table.busy[s] += length;
        done.push_back({action, start, clock[s]});
        progress = true;
      }
    }
  }
  for (int64_t s = 0; s < p; ++s) {
    RECKON_CHECK(table.stages[s].size() == orders[s].size());
    table.makespan = std::max(table.makespan, clock[s]);
  }
  double ideal = *std::max_element(table.busy.begin(), table.busy.end());
  if (ideal > 0)
    table.bubbleFraction = (table.makespan - ideal) / ideal;
  return table;
}

double model::scheduleMakespan(ScheduleKind kind, int64_t microBatches,
                               std::span<const StageDurations> durations,
                               double transfer) {
  auto makespan = [&](int64_t m) {
    return simulateSchedule(kind, m, durations, transfer).makespan;
  };
  // With slow messages the steady state repeats only after as many
  // micro-batches as are in flight between two neighbours, some number up to
  // p. A window of 12 p holds whole periods of all of them up to p = 4, and
  // enough periods of the others.
  auto p = static_cast<int64_t>(durations.size());
  int64_t window = 12 * p, enough = 2 * window;
  if (microBatches <= enough)
    return makespan(microBatches);
  double base = makespan(enough);
  double slope =
      (base - makespan(enough - window)) / static_cast<double>(window);
  return base + slope * static_cast<double>(microBatches - enough);
}

double model::scheduleBubble(ScheduleKind, int64_t stages,
                             int64_t microBatches) {
  return static_cast<double>(stages - 1) / static_cast<double>(microBatches);
}

static Timetable unitTimetable(ScheduleKind kind, int64_t stages,
                               int64_t microBatches) {
  std::vector<StageDurations> units(stages);
  return simulateSchedule(kind, microBatches, units);
}

std::string model::scheduleCsv(ScheduleKind kind, int64_t stages,
                               int64_t microBatches) {
  Timetable table = unitTimetable(kind, stages, microBatches);
  auto columns = static_cast<size_t>(std::llround(table.makespan));
  std::string csv;
  for (int64_t s = 0; s < stages; ++s) {
    std::vector<std::string> row(columns);
    for (const TimedAction &timed : table.stages[s])
      row[std::llround(timed.start)] = std::to_string(s) + timed.action.pass +
                                       std::to_string(timed.action.microBatch);
    for (size_t column = 0; column < columns; ++column) {
      if (column)
        csv += ',';
      csv += row[column];
    }
    csv += '\n';
  }
  return csv;
}

std::string model::schedulePicture(ScheduleKind kind, int64_t stages,
                                   int64_t microBatches, size_t maxColumns) {
  // F = 1, B = 2; what is cut off need not be simulated.
  auto units = static_cast<size_t>(3 * (microBatches + stages - 1));
  Timetable table = unitTimetable(
      kind, stages,
      std::min(microBatches, stages + static_cast<int64_t>(maxColumns)));
  size_t width = std::to_string(microBatches - 1).size() + 2;
  size_t labelWidth = std::to_string(stages - 1).size();
  size_t room = std::max(width, maxColumns > labelWidth + 10
                                    ? maxColumns - labelWidth - 10
                                    : width);
  size_t shown = std::min(units, room / width);
  std::string picture;
  for (int64_t s = 0; s < stages; ++s) {
    std::string row((shown + 2) * width, ' ');
    std::vector<bool> used(shown + 2, false);
    for (const TimedAction &timed : table.stages[s]) {
      auto start = static_cast<size_t>(std::llround(timed.start));
      auto end = static_cast<size_t>(std::llround(timed.end));
      if (start >= shown)
        break;
      std::string cell =
          timed.action.pass + std::to_string(timed.action.microBatch);
      // A bar as long as the action, so that a backward looks like two units.
      cell.resize((end - start) * width - 1,
                  timed.action.pass == 'B' ? '-' : ' ');
      row.replace(start * width, cell.size(), cell);
      for (size_t unit = start; unit < end; ++unit)
        used[unit] = true;
    }
    for (size_t unit = 0; unit < shown; ++unit)
      if (!used[unit])
        row[unit * width] = '.';
    std::string number = std::to_string(s);
    picture += "stage " + std::string(labelWidth - number.size(), ' ') +
               number + " |" + row.substr(0, shown * width);
    picture += shown < units ? "...\n" : "|\n";
  }
  if (shown < units)
    picture += "(the first " + std::to_string(shown) + " of " +
               std::to_string(units) + " time units)\n";
  return picture;
}
