//===- Layout.cpp - the arena of a stage ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Layout.h"

using namespace reckon::model;

StageLayout reckon::model::layoutStage(const LayoutInput &input) {
  StageLayout layout;
  uint64_t at = 0;
  for (uint64_t bytes : input.states) {
    layout.stateOffsets.push_back(at);
    at += alignUp(bytes);
  }
  for (const SlotClassSize &slot : input.slots) {
    layout.slotOffsets.push_back(at);
    layout.slotStrides.push_back(alignUp(slot.bytes));
    at += alignUp(slot.bytes) * slot.count;
  }
  for (uint64_t bytes : input.lanes) {
    layout.laneOffsets.push_back(at);
    at += alignUp(bytes);
  }
  layout.arenaBytes = at;
  return layout;
}
