//===- FragmentTimes.cpp - when a fragment's instructions run -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/timeline/FragmentTimes.h"

#include "passes/listing/PlanText.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::timeline;

std::vector<double> timeline::instructionSeconds(const InstructionTime &time,
                                                 const StagePlanT &plan,
                                                 const FragmentT &fragment) {
  std::vector<double> seconds;
  seconds.reserve(fragment.instructions.size());
  for (const auto &op : fragment.instructions)
    seconds.push_back(time.seconds(plan, *op));
  return seconds;
}

std::vector<size_t> timeline::meetings(const StagePlanT &plan,
                                       const FragmentT &fragment) {
  std::vector<size_t> found;
  for (size_t i = 0; i < fragment.instructions.size(); ++i) {
    const InstructionT &op = *fragment.instructions[i];
    if (!listing::isCollective(op.op))
      continue;
    const std::vector<Axis> &axes = plan.groups[op.group]->axes;
    if (plan.mesh->pp > 1 &&
        std::find(axes.begin(), axes.end(), Axis::pp) != axes.end())
      found.push_back(i);
  }
  return found;
}

FragmentTimes timeline::fragmentTimes(const FragmentT &fragment,
                                      std::span<const double> seconds,
                                      double start, double scale,
                                      std::span<const size_t> meetings,
                                      std::span<const double> notBefore) {
  uint32_t streams = 0;
  for (const auto &op : fragment.instructions)
    streams = std::max(streams, op->stream + 1);
  std::vector<double> clock(streams, start);
  // A wait refers to the newest record issued before it; without one, an event
  // is complete.
  std::vector<double> recorded(fragment.events, start);
  FragmentTimes times;
  times.end = start;
  times.instructions.reserve(fragment.instructions.size());
  size_t meeting = 0;
  for (size_t i = 0; i < fragment.instructions.size(); ++i) {
    const InstructionT &op = *fragment.instructions[i];
    double &now = clock[op.stream];
    if (op.op == Opcode::wait)
      now = std::max(now, recorded[op.event]);
    if (meeting < meetings.size() && meetings[meeting] == i) {
      if (meeting < notBefore.size())
        now = std::max(now, notBefore[meeting]);
      ++meeting;
    }
    Span span{now, now + scale * seconds[i]};
    now = span.end;
    if (op.op == Opcode::record)
      recorded[op.event] = now;
    times.instructions.push_back(span);
    times.end = std::max(times.end, now);
  }
  return times;
}
