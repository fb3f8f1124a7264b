//===- CertifyInstance.cpp - the part of a step that is certified ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/CertifyInstance.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;
using model::ScheduleKind;
using model::ScheduleShape;
using model::Timetable;

/// Shorter steps of more actions are not looked at for a block.
static constexpr int64_t kMostSimulated = 2'000'000;

static CertifyInstance whole(const CertifyQuery &query,
                             const ScheduleShape &shape, const Ticks &ticks) {
  CertifyInstance made;
  made.shape = shape;
  made.orders = query.orders ? *query.orders : model::makeOrders(shape);
  Result<Timetable> table = model::simulateOrders(
      made.orders, ticks.durations, static_cast<double>(ticks.transfer));
  RECKON_CHECK(table.ok());
  made.earliest = std::move(*table);
  return made;
}

static int64_t actionsOf(const ScheduleShape &shape) {
  return (model::splitsBackward(shape.kind) ? 3 : 2) * shape.stages() * shape.m;
}

/// The order of one forward and one backward in turn, where it takes no more
/// slots than the query has.
static std::optional<ScheduleShape> alternating(const CertifyQuery &query) {
  ScheduleShape shape = query.shape;
  shape.kind =
      shape.v == 1 ? ScheduleKind::OneFOneB : ScheduleKind::Interleaved;
  if (!model::whyNotSchedule(shape).empty())
    return std::nullopt;
  if (!query.slots.empty())
    for (int64_t rank = 0; rank < shape.p; ++rank)
      if (model::peakFormula(shape, rank) > query.slots[rank])
        return std::nullopt;
  return shape;
}

static bool firstForwards(ScheduleKind kind) {
  return kind == ScheduleKind::GPipe || kind == ScheduleKind::Bfs;
}

CertifyInstance search::certifyInstance(const CertifyQuery &query,
                                        const Ticks &ticks) {
  ScheduleShape shape = query.shape;
  if (query.orders)
    return whole(query, shape, ticks);
  if (firstForwards(shape.kind) && actionsOf(shape) > kMostActions)
    shape = alternating(query).value_or(shape);
  int64_t period = 1;
  if (shape.v > 1 && (shape.kind == ScheduleKind::Interleaved ||
                      shape.kind == ScheduleKind::ZbH1)) {
    if (!shape.group)
      shape.group = model::defaultGroup(shape.p, shape.m);
    period = shape.group;
  }
  if (!firstForwards(shape.kind) && shape.m > shape.p + 2) {
    ScheduleShape shorter = shape;
    // Warm-up and cool-down need some multiple of p micro-batches.
    for (int64_t m = period + shape.m % period;
         m < shape.m && m <= 8 * (shape.p + period); m += period) {
      shorter.m = m;
      if (actionsOf(shorter) > kMostSimulated)
        break;
      if (m < shape.p || !model::whyNotSchedule(shorter).empty())
        continue;
      CertifyInstance made = whole(query, shorter, ticks);
      StartTable table = startTable(made.orders, made.earliest);
      if (!inOrder(table))
        break;
      made.repeat = findRepeat(table, ticks, period);
      if (!made.repeat || (shape.m - m) % made.repeat->microBatches)
        continue;
      made.runs = (shape.m - m) / made.repeat->microBatches;
      return made;
    }
  }
  return whole(query, shape, ticks);
}
