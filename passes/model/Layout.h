//===- Layout.h - the arena of a stage, shared by planner and compiler ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The one function that decides where bytes lie. `reckon plan` calls it with
// sizes from closed forms, the compiler with sizes from the IR; equal sizes
// give equal offsets and equal totals, and the runtime allocates the total.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_LAYOUT_H
#define RECKON_PASSES_MODEL_LAYOUT_H

#include <cstdint>
#include <vector>

namespace reckon::model {

/// Of every state, slot, lane, and tensor inside a stash or lane.
inline constexpr uint64_t kAlignment = 256;

constexpr uint64_t alignUp(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct SlotClassSize {
  uint64_t bytes = 0; ///< of one slot, before alignment
  uint64_t count = 0;
};

/// Sizes in bytes before alignment, in the order in which they are laid out:
/// states, slot classes, lanes.
struct LayoutInput {
  std::vector<uint64_t> states;
  std::vector<SlotClassSize> slots;
  std::vector<uint64_t> lanes;
};

/// Offsets from the start of the arena.
struct StageLayout {
  std::vector<uint64_t> stateOffsets;
  std::vector<uint64_t> slotOffsets; ///< of slot 0 of each class
  std::vector<uint64_t> slotStrides; ///< aligned bytes of one slot
  std::vector<uint64_t> laneOffsets;
  uint64_t arenaBytes = 0;
};

StageLayout layoutStage(const LayoutInput &input);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_LAYOUT_H
