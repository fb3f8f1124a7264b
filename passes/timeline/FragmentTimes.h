//===- FragmentTimes.h - when a fragment's instructions run ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_TIMELINE_FRAGMENTTIMES_H
#define RECKON_PASSES_TIMELINE_FRAGMENTTIMES_H

#include "passes/timeline/InstructionTime.h"

#include <span>
#include <vector>

namespace reckon::timeline {

/// Seconds from the start of the step.
struct Span {
  double start = 0;
  double end = 0;
  double length() const { return end - start; }
};

/// Durations of a fragment's instructions, in their order.
std::vector<double> instructionSeconds(const InstructionTime &time,
                                       const plan::StagePlanT &plan,
                                       const plan::FragmentT &fragment);

/// Indices of the collectives that ranks of several stages take part in.
std::vector<size_t> meetings(const plan::StagePlanT &plan,
                             const plan::FragmentT &fragment);

struct FragmentTimes {
  std::vector<Span> instructions; ///< empty ones for events
  double end = 0;                 ///< of the last instruction
};

/// Runs the instructions from `start` on, each as early as its stream and the
/// fragment's events allow, for `scale` times its `seconds`. The i-th of
/// `meetings` starts not before the i-th of `notBefore`, if there is one.
FragmentTimes fragmentTimes(const plan::FragmentT &fragment,
                            std::span<const double> seconds, double start,
                            double scale, std::span<const size_t> meetings = {},
                            std::span<const double> notBefore = {});

} // namespace reckon::timeline

#endif // RECKON_PASSES_TIMELINE_FRAGMENTTIMES_H
