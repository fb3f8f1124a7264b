//===- TimelineTest.cpp - memory over one step ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/unit/account/Models.h"

#include <gtest/gtest.h>

#include <set>

using namespace reckon;
using namespace reckon::model;

namespace {

TEST(Timeline, PeakIsTheAccountOfTheRank) {
  for (auto representation : {Representation::Reckon, Representation::Megatron})
    for (auto recompute : {Recompute::None, Recompute::Full}) {
      Accountant accountant(jobOf(llama8B(), representation));
      model::Choice c{.pp = 4,
                      .numMicroBatches = 100,
                      .recompute = recompute,
                      .layout = {8, 8, 8, 8}};
      for (int64_t rank = 0; rank < 4; ++rank) {
        MemoryTimeline t = accountant.timeline(c, rank);
        EXPECT_EQ(t.peak(), accountant.memory(c, rank).total());
        EXPECT_EQ(t.ppRank, rank);
        EXPECT_LT(t.microBatches, 100);
      }
    }
}

TEST(Timeline, PhasesInOrderAndBalanced) {
  Accountant accountant(jobOf(llama70B(), Representation::Megatron));
  for (auto kind : {ScheduleKind::Interleaved, ScheduleKind::ZbH1,
                    ScheduleKind::ZbV, ScheduleKind::DualPipeV}) {
    model::Choice c = seed70B();
    c.schedule = kind;
    if (kind == ScheduleKind::ZbH1)
      c.v = 1;
    else if (kind != ScheduleKind::Interleaved)
      c.v = 2;
    c.layout.assign(4 * c.v, 80 / (4 * c.v));
    for (int64_t rank = 0; rank < 4; ++rank) {
      MemoryTimeline t = accountant.timeline(c, rank);
      EXPECT_LE(t.peak(), accountant.memory(c, rank).total());
      EXPECT_GE(t.peak(), accountant.memory(c, rank).total() * 0.9);
      EXPECT_STREQ(t.points.front().phase, "start");
      EXPECT_STREQ(t.points.back().phase, "end");
      EXPECT_EQ(t.points.front().total(), t.points.back().total());
      std::vector<std::string> order;
      for (size_t i = 0; i < t.points.size(); ++i) {
        EXPECT_LE(t.points[i ? i - 1 : 0].time, t.points[i].time);
        if (order.empty() || order.back() != t.points[i].phase)
          order.push_back(t.points[i].phase);
      }
      std::vector<std::string> expected = {
          "start",     "warm-up",   "steady", "cool-down",
          "gradients", "optimizer", "end"};
      EXPECT_EQ(order, expected);
    }
  }
}

// Three micro-batches on two stages, rank 0: F0 F1 B0 F2 B1 B2 in units of 1
// and 2, rank 1 F0 B0 F1 B1 F2 B2. B0 on rank 0 starts at 1 + 1 + 2 = 4.
TEST(Timeline, TimesComeFromTheSchedule) {
  Accountant accountant(jobOf(llama8B(), Representation::Megatron));
  model::Choice c{.pp = 2, .numMicroBatches = 3, .layout = {16, 16}};
  MemoryTimeline t = accountant.timeline(c, 0);
  uint64_t one = 0;
  for (const MemoryPoint &point : t.points)
    if (point.time == 0 && std::string(point.phase) == "warm-up")
      one = point.activations;
  ASSERT_GT(one, 0u);
  auto at = [&](double time) {
    uint64_t held = 0;
    for (const MemoryPoint &point : t.points)
      if (point.time <= time)
        held = point.activations;
    return held;
  };
  EXPECT_EQ(at(0.5), one);
  EXPECT_EQ(at(1.5), 2 * one);
  EXPECT_EQ(at(3.5), 2 * one); // idle, both held
  EXPECT_EQ(at(4.5), 2 * one); // B0 runs
  EXPECT_EQ(at(6.5), 2 * one); // F2 in its place
  EXPECT_EQ(at(100), 0u);
}

// bf16 gradients become fp32 for the update: 4 B of the own shard.
TEST(Timeline, OptimizerStep) {
  Job job = jobOf(llama8B(), Representation::Megatron, "NeMo 24.07");
  model::Choice c{.dp = 8, .zero = 1, .numMicroBatches = 2, .layout = {32}};
  uint64_t gradients = 0, optimizer = 0;
  for (const MemoryPoint &point : Accountant(job).timeline(c, 0).points) {
    if (std::string(point.phase) == "gradients")
      gradients = point.total();
    if (std::string(point.phase) == "optimizer")
      optimizer = point.total();
  }
  EXPECT_EQ(optimizer - gradients, 4 * 8030261248u / 8);
}

} // namespace
