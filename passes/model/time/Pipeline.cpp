//===- Pipeline.cpp - messages that lengthen a step -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Pipeline.h"

#include "passes/model/Schedule.h"

using namespace reckon;
using namespace reckon::model;

double model::exposedMessages(ScheduleKind kind, int64_t p, int64_t v,
                              int64_t m, double hidden) {
  if (p <= 1)
    return 0;
  if (v > 1 && !isVShaped(kind))
    return 2.0 * static_cast<double>(p * v - 1);
  double ramps = 2.0 * static_cast<double>(p - 1);
  return ramps + 2.0 * static_cast<double>(m) * (1 - hidden);
}
