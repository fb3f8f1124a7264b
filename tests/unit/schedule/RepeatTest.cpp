//===- RepeatTest.cpp - blocks that may run more often --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Repeat.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::search;

namespace {

TEST(Ticks, CommonUnitOrRoundedUp) {
  std::vector<StageDurations> units(2);
  Ticks ticks = inTicks(units, 0);
  EXPECT_TRUE(ticks.exact);
  EXPECT_EQ(ticks.of(0, 'F'), 1);
  EXPECT_EQ(ticks.of(0, 'B'), 2);
  EXPECT_EQ(ticks.of(1, 'W'), 1);
  EXPECT_EQ(ticks.floor(26.0), 26);
  // 0.3, 0.4, 0.5 and 0.25 are multiples of 0.05 = 0.25 / 5.
  ticks = inTicks(std::vector<StageDurations>{{0.3, 0.9, 0.5}}, 0.25);
  EXPECT_TRUE(ticks.exact);
  EXPECT_EQ(ticks.of(0, 'F'), 6);
  EXPECT_EQ(ticks.of(0, 'I'), 8);
  EXPECT_EQ(ticks.of(0, 'W'), 10);
  EXPECT_EQ(ticks.transfer, 5);
  // No common unit: none is shorter than it was.
  ticks =
      inTicks(std::vector<StageDurations>{{0.123456789, 0.3, 0.1}}, 0.01, 1000);
  EXPECT_FALSE(ticks.exact);
  EXPECT_GE(static_cast<double>(ticks.of(0, 'F')) * ticks.length, 0.123456789);
  EXPECT_GE(static_cast<double>(ticks.of(0, 'I')) * ticks.length, 0.2 - 1e-12);
  EXPECT_LE(static_cast<double>(ticks.floor(1)) * ticks.length, 1);
}

TEST(Repeat, OneMicroBatchOf1F1B) {
  // p = 2, F = 1, B = 2. Rank 0: F0 0, F1 1, B0 4, F2 6, B1 7, F3 9, B2 10 ...
  // Rank 1: F0 1, B0 2, F1 4, B1 5, F2 7, B2 8, ...
  PipelineOrders orders = makeOrders({ScheduleKind::OneFOneB, 2, 1, 5});
  std::vector<StageDurations> units(2);
  Ticks ticks = inTicks(units, 0);
  StartTable table = startTable(orders, *simulateOrders(orders, units));
  EXPECT_TRUE(inOrder(table));
  std::optional<Repeat> repeat = findRepeat(table, ticks, 1);
  ASSERT_TRUE(repeat);
  EXPECT_EQ(repeat->microBatches, 1);
  EXPECT_EQ(repeat->length, 3);
  EXPECT_EQ(repeat->begin, 6);
  EXPECT_EQ(repeat->guard, 2);
  // Not one: two forwards of rank 0 start in [0, 3) and none in [3, 6).
  EXPECT_FALSE(repeats(table, {1, 0, 3, 2}));
  EXPECT_FALSE(repeats(table, {1, 6, 4, 2}));
}

TEST(Repeat, RepeatedIsTheLongerStep) {
  for (ScheduleKind kind :
       {ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::ZbH1,
        ScheduleKind::ZbH2, ScheduleKind::ZbV, ScheduleKind::DualPipeV})
    for (int64_t p : {2, 4}) {
      bool two = kind == ScheduleKind::Interleaved || isVShaped(kind);
      ScheduleShape shape{kind, p, two ? 2 : 1, 8 * p};
      std::vector<StageDurations> units(shape.stages());
      Ticks ticks = inTicks(units, 0);
      auto tableOf = [&](const ScheduleShape &of) {
        PipelineOrders orders = makeOrders(of);
        return startTable(orders, *simulateOrders(orders, units));
      };
      int64_t period = kind == ScheduleKind::Interleaved ? p : 1;
      StartTable table = tableOf(shape);
      std::optional<Repeat> repeat = findRepeat(table, ticks, period);
      ASSERT_TRUE(repeat) << scheduleName(kind) << p;
      EXPECT_EQ(repeat->length, repeat->microBatches * (two ? 6 : 3));
      ScheduleShape longer = shape;
      longer.m += 3 * repeat->microBatches;
      StartTable more = repeated(table, *repeat, 3), exact = tableOf(longer);
      EXPECT_EQ(more.starts, exact.starts) << scheduleName(kind) << p;
      EXPECT_EQ(more.whole, exact.whole);
    }
}

} // namespace
