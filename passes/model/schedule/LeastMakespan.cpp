//===- LeastMakespan.cpp - what no layout of a schedule can beat ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

/// oneForwardOneBackward() takes at least
///   T_r = m w_r + (w of the ranks before) + (w of the ranks after) - o_r w_r/2
/// on every rank r, with o_r = min(p-1-r, m-1): it waits start + end >= 2
/// (after)
/// - o_r w_r, or half of that where both waits are one. So T_r = W + c_r w_r
/// with c_r = m - 1 - o_r / 2, and the greatest is least where all are equal:
/// the ranks then share W in proportion to 1 / c_r.
static double oneForwardOneBackward(int64_t p, int64_t m, double work) {
  if (m == 1)
    return work;
  double shares = 0;
  for (int64_t r = 0; r < p; ++r) {
    auto others = static_cast<double>(std::min(p - 1 - r, m - 1));
    shares += 1 / (static_cast<double>(m - 1) - others / 2);
  }
  return work + work / shares;
}

double model::leastMakespan(const ScheduleShape &shape, double work) {
  auto ranks = static_cast<double>(shape.p), m = static_cast<double>(shape.m);
  if (shape.v == 1 && shape.kind == ScheduleKind::OneFOneB)
    return oneForwardOneBackward(shape.p, shape.m, work);
  // Each pass waits for its own slowest, and that is no less than the mean.
  if (shape.v == 1 &&
      (shape.kind == ScheduleKind::GPipe || shape.kind == ScheduleKind::Bfs))
    return work + (m - 1) * work / ranks;
  // The ends of several chunks may be as short as one likes, and those of
  // zero-bubble schedules hide; but the busiest rank has at least the mean.
  return m * work / ranks;
}
