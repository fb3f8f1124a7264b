//===- IntervalPacker.h - buffers with known lifetimes into one block -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_INTERVALPACKER_H
#define RECKON_PASSES_MODEL_INTERVALPACKER_H

#include <cstdint>
#include <span>
#include <vector>

namespace reckon::model {

/// One buffer that lives at the instructions `begin` .. `end`, both inclusive:
/// it is allocated before instruction `begin` runs and freed after `end` did,
/// so a result never shares bytes with an operand of the same instruction.
struct Interval {
  uint64_t bytes = 0;
  int begin = 0;
  int end = 0;
};

struct Packing {
  std::vector<uint64_t> offsets; ///< of each interval, aligned
  uint64_t total = 0;            ///< aligned end of the block
  /// The most bytes that live at one instruction, sizes aligned: no packing is
  /// smaller.
  uint64_t lowerBound = 0;
};

/// Walks the intervals by `begin`, equal ones in the given order, and puts each
/// into the lowest gap among the living ones that fits. Sizes and offsets are
/// multiples of kAlignment; an empty interval gets offset 0.
Packing packFirstFit(std::span<const Interval> intervals);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_INTERVALPACKER_H
