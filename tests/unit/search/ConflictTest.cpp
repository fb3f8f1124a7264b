//===- ConflictTest.cpp - the smallest set of limits that reject all ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Conflict.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

using namespace reckon::search;

namespace {

bool hits(LimitMask set, const std::vector<LimitMask> &masks) {
  for (LimitMask mask : masks)
    if (!(mask & set))
      return false;
  return true;
}

TEST(HittingSet, OneLimitInEveryMask) {
  // {0, 1}, {0, 2}, {0, 3}: limit 0 alone.
  EXPECT_EQ(smallestHittingSet({0b0011, 0b0101, 0b1001}, 0), 0b0001u);
}

TEST(HittingSet, DisjointMasksNeedOneEach) {
  // {0}, {1}, {2, 3}: 0, 1 and the lower of 2 and 3, or the preferred one.
  EXPECT_EQ(smallestHittingSet({0b0001, 0b0010, 0b1100}, 0), 0b0111u);
  EXPECT_EQ(smallestHittingSet({0b0001, 0b0010, 0b1100}, 0b1000), 0b1011u);
}

TEST(HittingSet, IsSmallestOnRandomMasks) {
  std::mt19937 random(1);
  std::uniform_int_distribution<LimitMask> mask(1, (1u << 10) - 1);
  for (int i = 0; i < 200; ++i) {
    std::vector<LimitMask> masks(1 + i % 8);
    for (LimitMask &each : masks)
      each = mask(random) & mask(random);
    std::erase(masks, 0u);
    LimitMask set = smallestHittingSet(masks, 0);
    EXPECT_TRUE(hits(set, masks));
    for (LimitMask other = 0; other < (1u << 10); ++other)
      if (std::popcount(other) < std::popcount(set))
        EXPECT_FALSE(hits(other, masks)) << other;
  }
}

} // namespace
