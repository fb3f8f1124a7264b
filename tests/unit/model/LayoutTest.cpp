//===- LayoutTest.cpp - offsets of a small arena --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Layout.h"

#include <gtest/gtest.h>

using namespace reckon::model;

namespace {

TEST(Layout, StatesThenSlotsThenLanes) {
  StageLayout layout = layoutStage(
      {.states = {100, 256, 257}, .slots = {{1000, 3}, {64, 2}}, .lanes = {5}});
  // 100 -> 256, 256 -> 256, 257 -> 512: slots start at 1024.
  EXPECT_EQ(layout.stateOffsets, (std::vector<uint64_t>{0, 256, 512}));
  // Three slots of 1024, two of 256.
  EXPECT_EQ(layout.slotOffsets, (std::vector<uint64_t>{1024, 4096}));
  EXPECT_EQ(layout.slotStrides, (std::vector<uint64_t>{1024, 256}));
  EXPECT_EQ(layout.laneOffsets, (std::vector<uint64_t>{4608}));
  EXPECT_EQ(layout.arenaBytes, 4864u);
}

TEST(Layout, Empty) { EXPECT_EQ(layoutStage({}).arenaBytes, 0u); }

} // namespace
