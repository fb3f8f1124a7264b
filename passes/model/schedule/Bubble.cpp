//===- Bubble.cpp - idle time by formula ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

using namespace reckon;
using namespace reckon::model;

std::optional<double> model::idleFormula(const ScheduleShape &shape, double f,
                                         double i, double w) {
  auto [kind, p, v, m, group] = shape;
  auto ramp = static_cast<double>(p - 1), chunks = static_cast<double>(v);
  bool equal = f == i && i == w;
  if (!whyNotSchedule(shape).empty())
    return std::nullopt;
  switch (kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::OneFOneB:
    return ramp * (f + i + w);
  case ScheduleKind::Interleaved:
    return ramp * (f + i + w) / chunks;
  case ScheduleKind::Bfs:
    // The first micro-batch must be back before the chunk's last has left.
    if (m < p && v > 1)
      return std::nullopt;
    return ramp * (f + i + w) / chunks;
  case ScheduleKind::ZbH1:
    // Weight gradients fill what 1F1B waits for, as long as they fit.
    if (v > 1 || m < p || w > f || w > i)
      return std::nullopt;
    return ramp * (f + i - w);
  case ScheduleKind::ZbH2:
    // Ranks do not wait, but start one after the other.
    if (!equal || m < p)
      return std::nullopt;
    return ramp * f;
  case ScheduleKind::ZbV:
    if (!equal || m < 2 * p - 1)
      return std::nullopt;
    return ramp * f / chunks;
  case ScheduleKind::DualPipeV:
    if (!equal)
      return std::nullopt;
    return ramp * (f + i - w) / chunks;
  case ScheduleKind::Synthesized:
  case ScheduleKind::Csv:
    break;
  }
  return std::nullopt;
}

double model::scheduleBubble(const ScheduleShape &shape) {
  double v = static_cast<double>(shape.v), m = static_cast<double>(shape.m);
  if (auto idle = idleFormula(shape, v, v, v)) // a chunk's passes take 1
    return *idle / (3 * v * m);
  std::vector<StageDurations> units(shape.stages());
  double work = 3 * v * m;
  return (scheduleMakespan(shape, units) - work) / work;
}

double model::scheduleBubble(ScheduleKind kind, int64_t stages,
                             int64_t microBatches) {
  return scheduleBubble(ScheduleShape{kind, stages, 1, microBatches});
}
