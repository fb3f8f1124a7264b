//===- Pipeline.cpp - makespan of a step from the stages' times -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Pipeline.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

static bool isVShaped(ScheduleKind kind) {
  return kind == ScheduleKind::ZbV || kind == ScheduleKind::DualPipeV;
}

int64_t model::pipelineRank(ScheduleKind kind, int64_t p, int64_t stage) {
  int64_t rank = stage % p;
  return isVShaped(kind) && (stage / p) % 2 == 1 ? p - 1 - rank : rank;
}

double model::pipelineBubble(ScheduleKind kind, int64_t v, int64_t m,
                             std::span<const RankLoad> ranks) {
  if (ranks.size() <= 1)
    return 0;
  double most = 0, sum = 0, forwards = 0, backwards = 0, mostForward = 0,
         mostBackward = 0;
  for (const RankLoad &rank : ranks) {
    most = std::max(most, rank.total());
    sum += rank.total();
    forwards += rank.forward;
    backwards += rank.backward;
    mostForward = std::max(mostForward, rank.forward);
    mostBackward = std::max(mostBackward, rank.backward);
  }
  // What is idle at the ramps is the work of the other ranks; the pieces below
  // are sums over them.
  auto others = [&](auto piece) {
    double idle = 0, largest = 0;
    for (const RankLoad &rank : ranks) {
      double seconds = std::max(0.0, piece(rank));
      idle += seconds;
      largest = std::max(largest, seconds);
    }
    return idle - largest;
  };
  RankLoad mean;
  auto size = static_cast<double>(ranks.size());
  for (const RankLoad &rank : ranks) {
    mean.forward += rank.forward / size;
    mean.backward += rank.backward / size;
    mean.weight += rank.weight / size;
  }
  auto count = static_cast<double>(m);
  auto chunks = static_cast<double>(std::max<int64_t>(v, 1));
  switch (kind) {
  case ScheduleKind::GPipe:
    // All forwards, then all backwards: each pass waits for its own slowest.
    return forwards + backwards + (count - 1) * (mostForward + mostBackward) -
           count * most;
  case ScheduleKind::ZbH1:
    return others([](const RankLoad &r) {
      return std::max({r.forward, r.input(), r.forward + r.input() - r.weight});
    });
  case ScheduleKind::ZbH2:
    // With F + I <= 2 W no rank idles within its span, but ranks start one
    // forward after the other and the step ends for all at once.
    return others([](const RankLoad &r) {
      return std::max(r.forward, r.forward + r.input() - 2 * r.weight);
    });
  case ScheduleKind::ZbV: {
    // Both chunks of a rank are in a load, hence the halves.
    double equal = others([](const RankLoad &r) {
      return std::max({r.forward / 2, r.input() / 2, r.input() - r.weight});
    });
    double late =
        others([](const RankLoad &r) { return r.forward - r.input() / 2; });
    return std::max(equal, late - (mean.forward - mean.input()) / 2);
  }
  case ScheduleKind::DualPipeV: {
    double equal = others([](const RankLoad &r) {
      return std::max(r.forward, r.forward + r.input() - r.weight) / 2;
    });
    double late =
        others([](const RankLoad &r) { return r.input() - r.weight / 2; });
    return std::max(equal, late - mean.forward / 2);
  }
  default:
    return (sum - most) / chunks;
  }
}

double model::exposedMessages(ScheduleKind kind, int64_t p, int64_t v,
                              int64_t m, double hidden) {
  if (p <= 1)
    return 0;
  if (v > 1 && !isVShaped(kind))
    return 2.0 * static_cast<double>(p * v - 1);
  double ramps = 2.0 * static_cast<double>(p - 1);
  return ramps + 2.0 * static_cast<double>(m) * (1 - hidden);
}
