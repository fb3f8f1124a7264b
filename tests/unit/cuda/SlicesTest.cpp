//===- SlicesTest.cpp - attention in parts that fit their scratch ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/Slices.h"

#include <gtest/gtest.h>

using namespace reckon::cuda;

namespace {

/// Tries slices as the plugin does; `each` is the scratch of one key head.
AttentionSlice settle(const AttentionShape &shape, int64_t each,
                      int64_t limit) {
  AttentionSlice slice{shape.batch, shape.hkv};
  for (int tries = 0; tries < 64; ++tries) {
    AttentionSlice next =
        smallerSlice(shape, slice, each * slice.batch * slice.hkv, limit);
    if (next == slice)
      return slice;
    EXPECT_LT(next.batch * next.hkv, slice.batch * slice.hkv);
    slice = next;
  }
  ADD_FAILURE() << "no end of smaller slices";
  return slice;
}

TEST(Slices, TakeAllThatFits) {
  AttentionShape shape{.batch = 4, .hq = 32, .hkv = 8};
  EXPECT_EQ(settle(shape, 10, 320), (AttentionSlice{4, 8}));
}

TEST(Slices, AreSequencesFirst) {
  AttentionShape shape{.batch = 4, .hq = 32, .hkv = 8};
  // 32 heads of 10 are one too many for 319: 2 of 4 sequences are 160.
  EXPECT_EQ(settle(shape, 10, 319), (AttentionSlice{2, 8}));
  EXPECT_EQ(settle(shape, 10, 159), (AttentionSlice{1, 8}));
  // Three would fit, but do not divide four.
  EXPECT_EQ(settle(shape, 10, 240), (AttentionSlice{2, 8}));
}

TEST(Slices, AreHeadsOfOneSequenceThen) {
  AttentionShape shape{.batch = 3, .hq = 12, .hkv = 6};
  EXPECT_EQ(settle(shape, 10, 59), (AttentionSlice{1, 3}));
  EXPECT_EQ(settle(shape, 10, 29), (AttentionSlice{1, 2}));
  EXPECT_EQ(settle(shape, 10, 19), (AttentionSlice{1, 1}));
  // One group of heads cannot be divided.
  EXPECT_EQ(settle(shape, 10, 9), (AttentionSlice{1, 1}));
}

TEST(Slices, DivideWhatTheyArePartsOf) {
  for (int64_t batch : {1, 2, 3, 7, 12})
    for (int64_t hkv : {1, 2, 5, 8, 9})
      for (int64_t limit = 1; limit <= batch * hkv; ++limit) {
        AttentionShape shape{.batch = batch, .hq = hkv, .hkv = hkv};
        AttentionSlice slice = settle(shape, 1, limit);
        EXPECT_EQ(batch % slice.batch, 0);
        EXPECT_EQ(hkv % slice.hkv, 0);
        EXPECT_TRUE(slice.hkv == hkv || slice.batch == 1);
        EXPECT_LE(slice.batch * slice.hkv, limit);
      }
}

} // namespace
