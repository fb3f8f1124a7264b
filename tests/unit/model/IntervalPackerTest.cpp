//===- IntervalPackerTest.cpp - first fit against its properties ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/IntervalPacker.h"

#include "passes/model/Layout.h"

#include <gtest/gtest.h>

#include <random>

using namespace reckon::model;

namespace {

TEST(IntervalPacker, ByHand) {
  // a [0,1] at 0, b [1,2] behind it, c [2,3] into a's gap, d [2,2] is larger
  // than what c left there and goes behind b.
  std::vector<Interval> intervals{
      {1024, 0, 1}, {256, 1, 2}, {512, 2, 3}, {768, 2, 2}};
  Packing packing = packFirstFit(intervals);
  EXPECT_EQ(packing.offsets, (std::vector<uint64_t>{0, 1024, 0, 1280}));
  EXPECT_EQ(packing.total, 2048u);
  // At instruction 2: 256 + 512 + 768.
  EXPECT_EQ(packing.lowerBound, 1536u);
}

TEST(IntervalPacker, RoundsUpAndSkipsNothing) {
  std::vector<Interval> intervals{{1, 0, 5}, {0, 0, 5}, {257, 0, 5}};
  Packing packing = packFirstFit(intervals);
  EXPECT_EQ(packing.offsets, (std::vector<uint64_t>{0, 0, 256}));
  EXPECT_EQ(packing.total, 256u + 512u);
  EXPECT_EQ(packing.lowerBound, packing.total);
}

TEST(IntervalPacker, EndIsInclusive) {
  // A result may not overwrite an operand of its own instruction.
  std::vector<Interval> intervals{{256, 0, 1}, {256, 1, 1}, {256, 2, 2}};
  EXPECT_EQ(packFirstFit(intervals).offsets,
            (std::vector<uint64_t>{0, 256, 0}));
}

TEST(IntervalPacker, RandomProperties) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Interval> intervals(random() % 40);
    for (Interval &interval : intervals) {
      interval.bytes = random() % 3000;
      interval.begin = static_cast<int>(random() % 30);
      interval.end = interval.begin + static_cast<int>(random() % 10);
    }
    Packing packing = packFirstFit(intervals);
    EXPECT_EQ(packing.offsets, packFirstFit(intervals).offsets);
    EXPECT_GE(packing.total, packing.lowerBound);
    uint64_t live[40] = {};
    for (size_t i = 0; i < intervals.size(); ++i) {
      const Interval &a = intervals[i];
      EXPECT_EQ(packing.offsets[i] % kAlignment, 0u);
      EXPECT_LE(packing.offsets[i] + a.bytes, packing.total);
      for (int at = a.begin; at <= a.end; ++at)
        live[at] += alignUp(a.bytes);
      for (size_t j = 0; j < i; ++j) {
        const Interval &b = intervals[j];
        bool together = a.begin <= b.end && b.begin <= a.end;
        bool overlap = packing.offsets[i] < packing.offsets[j] + b.bytes &&
                       packing.offsets[j] < packing.offsets[i] + a.bytes;
        EXPECT_FALSE(together && overlap && a.bytes && b.bytes);
      }
    }
    EXPECT_EQ(packing.lowerBound, *std::max_element(live, live + 40));
  }
}

} // namespace
