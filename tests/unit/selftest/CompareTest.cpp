//===- CompareTest.cpp - tests of comparing results -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/KernelCheck.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace reckon;
using namespace reckon::selftest;
using device::DType;

namespace {

Difference between(const std::vector<float> &got,
                   const std::vector<float> &want, Tolerance tolerance) {
  return compare({DType::F32, static_cast<int64_t>(got.size())}, tolerance,
                 got.data(), want.data());
}

const float nan = std::numeric_limits<float>::quiet_NaN();
const float infinity = std::numeric_limits<float>::infinity();

TEST(Compare, EqualBitsAreNoError) {
  EXPECT_EQ(between({1, -infinity, 0}, {1, -infinity, 0}, sameBits).error(), 0);
  EXPECT_EQ(between({}, {}, sameBits).error(), 0);
}

TEST(Compare, ExactMeansEveryBit) {
  float next = std::nextafter(1.0f, 2.0f);
  EXPECT_FALSE(between({next}, {1}, sameBits).within());
  EXPECT_FALSE(between({-0.0f}, {0.0f}, sameBits).within());
  EXPECT_TRUE(between({-0.0f}, {0.0f}, pointwise(DType::F32)).within());
}

TEST(Compare, ErrorIsAFractionOfTheTolerance) {
  Tolerance tolerance{0.1, 0.0, 10.0};
  Difference found = between({1, 2.1f, -3}, {1, 2, -3}, tolerance);
  EXPECT_NEAR(found.worst, 0.5, 1e-6);
  EXPECT_EQ(found.element, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(found.got), 2.1f);
  EXPECT_TRUE(found.within());
  EXPECT_FALSE(between({1, 2.3f, -3}, {1, 2, -3}, tolerance).within());
}

TEST(Compare, SmallElementsMayCancel) {
  // RMS 1: an element near 0 may be wrong by a fraction of that.
  std::vector<float> want = {1, -1, 1, -1, 1, -1, 0, std::sqrt(2.0f)};
  std::vector<float> got = want;
  got[6] = 1e-3f;
  EXPECT_TRUE(between(got, want, {0, 2e-3, 1}).within());
  EXPECT_FALSE(between(got, want, {0, 0.5e-3, 1}).within());
}

TEST(Compare, AFewElementsMayAllBeSmall) {
  EXPECT_FALSE(between({1.1e-3f}, {1e-3f}, {0, 1e-2, 1e-2}).within());
  EXPECT_TRUE(between({1.1e-3f}, {1e-3f}, {0, 1e-2, 1e-2, 0.05}).within());
}

TEST(Compare, ManySmallErrorsCount) {
  // Each is allowed, but not all of them in one direction.
  std::vector<float> want(100, 1.0f), got(100, 1.0f + 1e-3f), one = want;
  one[3] = got[3];
  Tolerance tolerance{2e-3, 0, 5e-4};
  EXPECT_TRUE(between(one, want, tolerance).within());
  Difference all = between(got, want, tolerance);
  EXPECT_LT(all.worst, 1);
  EXPECT_NEAR(all.norm, 2, 1e-3);
  EXPECT_FALSE(all.within());
}

TEST(Compare, WhatWasNeverWrittenIsWrong) {
  Tolerance loose{1, 1, 1};
  EXPECT_FALSE(between({nan}, {1}, loose).within());
  EXPECT_FALSE(between({1}, {nan}, loose).within());
  EXPECT_FALSE(between({nan}, {nan}, loose).within());
  EXPECT_FALSE(between({infinity}, {1}, loose).within());
  EXPECT_FALSE(between({-infinity}, {infinity}, loose).within());
}

TEST(Compare, ScratchIsNotCompared) {
  EXPECT_TRUE(between({nan}, {1}, {.scratch = true}).within());
}

TEST(Compare, ReadsBf16) {
  uint16_t got[] = {0x3f80, 0x4001}, want[] = {0x3f80, 0x4000}; // 1, 2
  Difference found = compare({DType::BF16, 2}, {0x1p-7, 0, 1}, got, want);
  EXPECT_EQ(found.element, 1);
  EXPECT_EQ(found.got, 2 + 0x1p-6);
  EXPECT_EQ(found.worst, 1);
}

TEST(Fill, ContentsAreWhatTheySay) {
  constexpr int64_t n = 100000;
  std::vector<float> values(n);
  fillOperand({DType::F32, n}, normal(2), 1, values.data());
  double sum = 0, squares = 0;
  for (float value : values) {
    sum += value;
    squares += double(value) * value;
  }
  EXPECT_NEAR(sum / n, 0, 0.03);
  EXPECT_NEAR(std::sqrt(squares / n), 2, 0.02);
  std::vector<float> others(n);
  fillOperand({DType::F32, n}, normal(2), 2, others.data());
  EXPECT_NE(values, others);
  fillOperand({DType::F32, n}, positive(3), 1, values.data());
  for (float value : values)
    ASSERT_TRUE(value >= 0 && value <= 3);
  std::vector<int32_t> words(n);
  fillOperand({DType::I32, n}, tokens(5, 3), 1, words.data());
  bool seen[3] = {};
  for (int32_t word : words) {
    ASSERT_TRUE(word >= 5 && word < 8);
    seen[word - 5] = true;
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2]);
  fillOperand({DType::F32, n}, {Content::Kind::Poison}, 1, values.data());
  for (float value : values)
    ASSERT_TRUE(std::isnan(value));
}

} // namespace
