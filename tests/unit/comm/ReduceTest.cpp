//===- ReduceTest.cpp - the arithmetic of reductions ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/comm/Reduce.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace reckon::comm {
namespace {

TEST(HalfPrecision, EveryBf16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = fromBf16(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(fromBf16(toBf16(value))));
    else
      ASSERT_EQ(toBf16(value), bits);
  }
}

TEST(HalfPrecision, EveryF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = fromF16(static_cast<uint16_t>(bits));
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(fromF16(toF16(value))));
    else
      ASSERT_EQ(toF16(value), bits);
  }
}

/// The half-precision value nearest to `x`, ties to even, by search.
template <typename From> uint16_t nearest(float x, From from, uint16_t inf) {
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  double magnitude = std::fabs(static_cast<double>(x));
  uint16_t low = 0, high = inf;
  while (low + 1 < high) {
    auto middle = static_cast<uint16_t>((low + high) / 2);
    (static_cast<double>(from(middle)) <= magnitude ? low : high) = middle;
  }
  double below = from(low);
  // Beyond the largest finite value the next step would be as wide as the last.
  double above =
      high == inf
          ? below + (below -
                     static_cast<double>(from(static_cast<uint16_t>(low - 1))))
          : static_cast<double>(from(high));
  double toLow = magnitude - below, toHigh = above - magnitude;
  bool up = toHigh < toLow || (toHigh == toLow && (low & 1));
  return static_cast<uint16_t>(sign | (up ? high : low));
}

TEST(HalfPrecision, RoundsToNearestEven) {
  uint32_t state = 12345;
  for (int i = 0; i < 200000; ++i) {
    state = state * 1664525u + 1013904223u;
    // Exponents around the half-precision range, subnormals included.
    float x =
        std::bit_cast<float>((state & 0x80ffffffu) |
                             ((100u + (state >> 8) % 45u) << 23 & 0x7f800000u));
    if (!std::isfinite(x))
      continue;
    ASSERT_EQ(toF16(x), nearest(x, fromF16, 0x7c00)) << x;
    ASSERT_EQ(toBf16(x), nearest(x, fromBf16, 0x7f80)) << x;
  }
  EXPECT_EQ(toF16(65519.0f), 0x7bff);
  EXPECT_EQ(toF16(65520.0f), 0x7c00);
  EXPECT_EQ(toF16(0x1p-25f), 0);             // half of the least: ties to even
  EXPECT_EQ(toF16(0x1.000002p-25f), 1);      // just above
  EXPECT_EQ(toBf16(1.0f + 0x1p-8f), 0x3f80); // tie, to even
  EXPECT_EQ(toBf16(1.0f + 0x1.8p-7f), 0x3f82);
}

TEST(Reduce, Bf16SumsAccumulateInFp32) {
  // 256 + 1 is not a bf16; five terms added one by one in bf16 stay at 256.
  std::vector<uint16_t> one{toBf16(1.0f)}, big{toBf16(256.0f)}, out(1);
  float acc = 0;
  widen(&acc, big.data(), 1, DType::BF16, Reduction::Sum);
  for (int i = 0; i < 3; ++i)
    accumulate(&acc, one.data(), 1, DType::BF16, Reduction::Sum);
  accumulateInto(out.data(), &acc, one.data(), 1, DType::BF16, Reduction::Sum);
  EXPECT_EQ(fromBf16(out[0]), 260.0f);
}

TEST(Reduce, ExpandsInPlaceWithoutOverwritingWhatItReads) {
  for (size_t n : {1u, 2u, 3u, 511u, 512u, 513u, 5000u}) {
    std::vector<float> buffer(n);
    std::vector<uint16_t> first(n), value(n);
    for (size_t i = 0; i < n; ++i) {
      first[i] = toF16(static_cast<float>(i % 97));
      value[i] = toF16(static_cast<float>(i % 31) * 0.5f);
    }
    char *raw = reinterpret_cast<char *>(buffer.data()) +
                firstHopOffset(n, DType::F16, Reduction::Sum);
    std::copy(first.begin(), first.end(), reinterpret_cast<uint16_t *>(raw));
    // In two parts, as segments cut it.
    size_t cut = n / 3;
    expand(buffer.data(), raw, value.data(), cut, DType::F16, Reduction::Sum);
    expand(buffer.data() + cut, raw + 2 * cut, value.data() + cut, n - cut,
           DType::F16, Reduction::Sum);
    for (size_t i = 0; i < n; ++i)
      ASSERT_EQ(buffer[i],
                static_cast<float>(i % 97) + static_cast<float>(i % 31) * 0.5f);
  }
}

TEST(Reduce, MaxKeepsNanOfEitherSide) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  for (auto [a, b] : {std::pair(nan, 1.0f), std::pair(1.0f, nan)}) {
    float out = 0;
    combine(&out, &a, &b, 1, DType::F32, Reduction::Max);
    EXPECT_TRUE(std::isnan(out));
  }
}

TEST(Reduce, IntegerSumsWrap) {
  int32_t a = std::numeric_limits<int32_t>::max(), b = 1, out = 0;
  combine(&out, &a, &b, 1, DType::I32, Reduction::Sum);
  EXPECT_EQ(out, std::numeric_limits<int32_t>::min());
}

} // namespace
} // namespace reckon::comm
