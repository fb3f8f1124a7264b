//===- PermutationTest.cpp - a seeded order without memory ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using reckon::data::Permutation;

TEST(Permutation, IsABijection) {
  for (uint64_t size : {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 4097})
    for (uint64_t epoch : {0, 1, 2}) {
      Permutation order(size, 7, epoch);
      std::vector<bool> seen(size);
      for (uint64_t i = 0; i < size; ++i) {
        uint64_t value = order(i);
        ASSERT_LT(value, size);
        ASSERT_FALSE(seen[value]) << size << " " << i;
        seen[value] = true;
      }
    }
}

TEST(Permutation, DependsOnSeedAndEpoch) {
  auto first = [](uint64_t seed, uint64_t epoch) {
    Permutation order(1000, seed, epoch);
    std::vector<uint64_t> values;
    for (int i = 0; i < 20; ++i)
      values.push_back(order(i));
    return values;
  };
  EXPECT_EQ(first(1, 0), first(1, 0));
  EXPECT_NE(first(1, 0), first(1, 1));
  EXPECT_NE(first(1, 0), first(2, 0));
}

/// Neighbours are spread: the mean distance of random pairs is a third of the
/// range, and every residue is hit about equally often in every stretch.
TEST(Permutation, LooksShuffled) {
  constexpr uint64_t kSize = 10000;
  for (uint64_t epoch = 0; epoch < 5; ++epoch) {
    Permutation order(kSize, 1234, epoch);
    double distance = 0;
    int low = 0;
    for (uint64_t i = 0; i + 1 < kSize; ++i) {
      distance += std::fabs(double(order(i)) - double(order(i + 1)));
      low += i < kSize / 2 && order(i) < kSize / 2;
    }
    EXPECT_NEAR(distance / kSize, kSize / 3.0, kSize * 0.02);
    EXPECT_NEAR(low, kSize / 4.0, 200);
  }
}
