//===- InFlight.cpp - how many stashes live at once -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>

using namespace reckon;
using namespace reckon::model;

using Moment = std::vector<LiveStash>;

static bool coveredBy(const Moment &a, const Moment &b) {
  for (size_t chunk = 0; chunk < a.size(); ++chunk)
    if (a[chunk].toInput > b[chunk].toInput ||
        a[chunk].toWeight > b[chunk].toWeight ||
        a[chunk].gradient > b[chunk].gradient)
      return false;
  return true;
}

InFlight model::inFlight(const std::vector<ComputeAction> &order, int64_t v) {
  InFlight result;
  Moment live(v);
  int64_t toInput = 0, toWeight = 0;
  std::set<Moment> moments;
  bool grown = false; // since the last moment that was noted
  auto note = [&] {
    if (grown)
      moments.insert(live);
    grown = false;
  };
  for (const ComputeAction &action : order) {
    LiveStash &chunk = live[action.chunk];
    switch (action.pass) {
    case 'F':
      ++chunk.toInput, ++toInput;
      ++chunk.toWeight, ++toWeight;
      grown = true;
      result.peak = std::max(result.peak, toWeight);
      result.peakToInput = std::max(result.peakToInput, toInput);
      break;
    case 'I': // reads one stash while it fills the other
      ++chunk.gradient;
      grown = true;
      note();
      --chunk.toInput, --toInput;
      break;
    case 'W':
      note();
      --chunk.toWeight, --toWeight;
      --chunk.gradient;
      break;
    default:
      note();
      --chunk.toInput, --toInput;
      --chunk.toWeight, --toWeight;
    }
  }
  note();
  for (const Moment &moment : moments)
    if (std::none_of(moments.begin(), moments.end(), [&](const Moment &other) {
          return other != moment && coveredBy(moment, other);
        }))
      result.maximal.push_back(moment);
  return result;
}

int64_t model::peakInFlight(const std::vector<ComputeAction> &order) {
  int64_t v = 1;
  for (const ComputeAction &action : order)
    v = std::max(v, action.chunk + 1);
  return inFlight(order, v).peak;
}

int64_t model::peakFormula(const ScheduleShape &shape, int64_t rank) {
  auto [kind, p, v, m, group] = shape;
  if (group == 0)
    group = defaultGroup(p, m);
  switch (kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::Bfs:
    return m * v;
  case ScheduleKind::OneFOneB:
    return std::min(m, p - rank);
  case ScheduleKind::Interleaved:
    return std::min(m * v, 2 * (p - 1 - rank) + (v - 1) * group + 1);
  case ScheduleKind::ZbH1:
    return std::min(m * v, p + (v - 1) * group);
  case ScheduleKind::ZbH2:
    return std::min(m, 2 * p - 1);
  case ScheduleKind::ZbV:
    return std::min(2 * m, 2 * p);
  case ScheduleKind::DualPipeV:
    return 2 * p + 1;
  case ScheduleKind::Synthesized:
  case ScheduleKind::Csv:
    break;
  }
  RECKON_CHECK(false && "no formula for this schedule");
}

/// The same stashes with fewer micro-batches: past the warm-up every group
/// repeats the one before.
static ScheduleShape shortened(ScheduleShape shape) {
  if (shape.v > 1 && shape.group == 0)
    shape.group = defaultGroup(shape.p, shape.m);
  bool grouped = shape.kind == ScheduleKind::Interleaved ||
                 (shape.kind == ScheduleKind::ZbH1 && shape.v > 1);
  if (!grouped)
    shape.group = 0;
  int64_t period = grouped ? shape.group : 1;
  int64_t enough = (4 * shape.p + 2 + period - 1) / period * period +
                   2 * period + shape.m % period;
  shape.m = std::min(shape.m, enough);
  return shape;
}

const InFlight &model::inFlight(const ScheduleShape &given, int64_t rank) {
  using Key = std::pair<ScheduleShape, int64_t>;
  static std::mutex mutex;
  static std::map<Key, std::unique_ptr<const InFlight>> known;
  bool all =
      given.kind == ScheduleKind::GPipe || given.kind == ScheduleKind::Bfs;
  ScheduleShape shape = all ? given : shortened(given);
  Key key{shape, all ? 0 : rank};
  {
    std::lock_guard lock(mutex);
    auto found = known.find(key);
    if (found != known.end())
      return *found->second;
  }
  InFlight made;
  if (all) { // every forward has run and no backward
    made.peak = made.peakToInput = shape.m * shape.v;
    made.maximal.push_back(Moment(shape.v, {shape.m, shape.m, 0}));
  } else {
    made = inFlight(scheduleOrder(shape, rank), shape.v);
  }
  std::lock_guard lock(mutex);
  auto &entry = known[key];
  if (!entry)
    entry = std::make_unique<const InFlight>(std::move(made));
  return *entry;
}
