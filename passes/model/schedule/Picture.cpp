//===- Picture.cpp - timetables as text -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

/// Orders of which the whole step has `m` micro-batches and takes `units`.
static std::string draw(const PipelineOrders &orders, int64_t m, size_t units,
                        size_t maxColumns) {
  std::vector<StageDurations> durations(orders.stages());
  Result<Timetable> table = simulateOrders(orders, durations);
  RECKON_CHECK(table.ok());
  int64_t p = orders.p, v = orders.v;
  size_t width = std::to_string(m - 1).size() + 2;
  if (v > 1)
    width += std::to_string(orders.stages() - 1).size();
  std::string label = v > 1 ? "rank " : "stage ";
  size_t labelWidth = std::to_string(p - 1).size();
  size_t room = std::max(width, maxColumns > labelWidth + 10
                                    ? maxColumns - labelWidth - 10
                                    : width);
  size_t shown = std::min(units, room / width);
  std::string picture;
  for (int64_t rank = 0; rank < p; ++rank) {
    std::string row((shown + 2) * width, ' ');
    std::vector<bool> used(shown + 2, false);
    for (const TimedAction &timed : table->ranks[rank]) {
      auto start = static_cast<size_t>(std::llround(timed.start));
      auto end = static_cast<size_t>(std::llround(timed.end));
      if (start >= shown)
        break;
      std::string cell =
          timed.action.pass + std::to_string(timed.action.microBatch);
      if (v > 1)
        cell = std::to_string(orders.stage(rank, timed.action.chunk)) + cell;
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
    std::string number = std::to_string(rank);
    picture += label + std::string(labelWidth - number.size(), ' ') + number +
               " |" + row.substr(0, shown * width);
    picture += shown < units ? "...\n" : "|\n";
  }
  if (shown < units)
    picture += "(the first " + std::to_string(shown) + " of " +
               std::to_string(units) + " time units)\n";
  return picture;
}

std::string model::schedulePicture(const ScheduleShape &shape,
                                   size_t maxColumns) {
  // F = I = W = 1, B = 2.
  auto [kind, p, v, m, group] = shape;
  std::vector<StageDurations> durations(shape.stages());
  auto units =
      static_cast<size_t>(std::llround(scheduleMakespan(shape, durations)));
  // What is cut off need not be simulated, as long as the group stays.
  ScheduleShape drawn = shape;
  int64_t enough = 4 * p + static_cast<int64_t>(maxColumns);
  if (v > 1 && kind != ScheduleKind::Bfs && !isVShaped(kind)) {
    drawn.group = group ? group : defaultGroup(p, m);
    enough = (enough / drawn.group + 2) * drawn.group + m % drawn.group;
  }
  drawn.m = std::min(m, enough);
  return draw(makeOrders(drawn), m, units, maxColumns);
}

std::string model::schedulePicture(const PipelineOrders &orders,
                                   size_t maxColumns) {
  std::vector<StageDurations> durations(orders.stages());
  Result<Timetable> table =
      simulateOrders(orders, durations, 0, /*keepActions=*/false);
  RECKON_CHECK(table.ok());
  return draw(orders, orders.m,
              static_cast<size_t>(std::llround(table->makespan)), maxColumns);
}

std::string model::schedulePicture(ScheduleKind kind, int64_t stages,
                                   int64_t microBatches, size_t maxColumns) {
  return schedulePicture(ScheduleShape{kind, stages, 1, microBatches},
                         maxColumns);
}
