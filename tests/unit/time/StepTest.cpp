//===- StepTest.cpp - the report of a step adds up ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/ModelFlops.h"
#include "passes/model/time/TimeModel.h"
#include "tests/unit/time/Jobs.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::model::test;

namespace {

/// TP8 PP4 DP32, one micro-batch a sequence.
model::Choice thousand(Recompute recompute) {
  return {.tp = 8,
          .pp = 4,
          .dp = 32,
          .zero = 1,
          .microBatch = 1,
          .numMicroBatches = 16,
          .recompute = recompute,
          .layout = {20, 20, 20, 20}};
}

const CommunicationTime *find(const StepTime &time, const char *collective) {
  for (const CommunicationTime &entry : time.communication)
    if (entry.collective == collective)
      return &entry;
  return nullptr;
}

const Job k70B = llama70b(1024, 512);

StepTime stepOf(const Job &job, const model::Choice &choice) {
  return TimeModel(job).step(choice);
}

TEST(StepTime, PartsAddUp) {
  for (Recompute recompute : {Recompute::None, Recompute::Full}) {
    StepTime t = stepOf(k70B, thousand(recompute));
    EXPECT_NEAR(t.step,
                t.compute + t.bubble + t.exposedCommunication + t.optimizer +
                    t.other,
                1e-9 * t.step);
    double points = 100 * t.mfu, seconds = t.ideal;
    for (const MfuLoss &loss : t.losses) {
      EXPECT_GE(loss.points, 0) << loss.item;
      points += loss.points;
      seconds += loss.seconds;
    }
    EXPECT_EQ(t.losses.size(), 7u);
    EXPECT_NEAR(points, 100, 1e-9);
    EXPECT_NEAR(seconds, t.step, 1e-9 * t.step);
    // One point on 1024 devices at 2.5 dollars: 0.01 * 1024 * 2.5 * 720 hours.
    EXPECT_NEAR(t.losses[0].dollarsPer30Days / t.losses[0].points, 18432, 1e-6);
    double exposed = 0;
    for (const CommunicationTime &entry : t.communication)
      exposed += entry.exposed;
    EXPECT_NEAR(exposed, t.exposedCommunication, 1e-9 * t.step);
  }
}

TEST(StepTime, IdealAndThroughput) {
  StepTime t = stepOf(k70B, thousand(Recompute::Full));
  // N without the input embedding and the norms; attention 6 * 80 * 8192 *
  // 8192.
  double n = 70553706496.0 - 128256.0 * 8192 - 161.0 * 8192;
  double flops = 6 * n + 6.0 * 80 * 8192 * 8192;
  EXPECT_DOUBLE_EQ(modelFlops(k70B.model, AttentionFlops::Causal).total(),
                   flops);
  double tokens = 512.0 * 8192;
  EXPECT_DOUBLE_EQ(t.ideal, flops * tokens / (1024 * 989.4e12));
  EXPECT_DOUBLE_EQ(t.tokensPerSecond, tokens / t.step);
  EXPECT_DOUBLE_EQ(t.mfu, t.ideal / t.step);
  // Full recomputation runs every layer's forward again but its last matmul.
  double head = 2.0 * 128256 * 8192, down = 2.0 * 28672 * 8192;
  EXPECT_DOUBLE_EQ(t.hfu / t.mfu,
                   (flops + flops / 3 - head - 80 * down) / flops);
  StepTime none = stepOf(k70B, thousand(Recompute::None));
  EXPECT_DOUBLE_EQ(none.hfu, none.mfu);
  // Published runs of this size reach 35 to 45 % without recomputation.
  EXPECT_GT(none.mfu, 0.25);
  EXPECT_LT(none.mfu, 0.50);
}

TEST(StepTime, BytesOfARing) {
  StepTime t = stepOf(k70B, thousand(Recompute::None));
  // Largest stage: 20 layers, a head and a norm.
  double layer =
      (2.0 * 8192 * 8192 + 2.0 * 1024 * 8192 + 3.0 * 28672 * 8192) / 8 +
      2 * 8192;
  double elements = 20 * layer + 128256.0 / 8 * 8192 + 8192;
  EXPECT_DOUBLE_EQ(find(t, "reduce_scatter")->bytesPerStep,
                   4 * elements * 31 / 32);
  EXPECT_DOUBLE_EQ(find(t, "all_gather")->bytesPerStep, 2 * elements * 31 / 32);
  // A middle stage sends an activation and a gradient a micro-batch.
  EXPECT_DOUBLE_EQ(find(t, "send_recv")->bytesPerStep,
                   16 * 2 * 2.0 * 8192 * 8192);
  EXPECT_STREQ(find(t, "all_reduce")->link.c_str(), "intra_node");
  EXPECT_STREQ(find(t, "send_recv")->link.c_str(), "inter_node");
  model::Choice one{.tp = 8, .pp = 1, .layout = {80}};
  EXPECT_EQ(find(stepOf(llama70b(8, 1), one), "send_recv"), nullptr);
}

TEST(StepTime, FasterPartsHelp) {
  model::Choice choice = thousand(Recompute::None);
  double base = stepOf(k70B, choice).step;
  for (double Job::*speed :
       {&Job::memoryBandwidth, &Job::intraBandwidth, &Job::interBandwidth}) {
    Job faster = k70B;
    faster.*speed *= 2;
    EXPECT_LT(stepOf(faster, choice).step, base);
  }
  EXPECT_GT(stepOf(k70B, thousand(Recompute::Full)).step, base);
  // The same work in half as many, twice as large micro-batches: more bubble.
  choice.microBatch = 2;
  choice.numMicroBatches = 8;
  StepTime coarse = stepOf(k70B, choice);
  EXPECT_GT(coarse.bubble, stepOf(k70B, thousand(Recompute::None)).bubble);
}

TEST(Job, GroupsWithinANode) {
  EXPECT_TRUE(k70B.withinDomain(1, 8));
  EXPECT_FALSE(k70B.withinDomain(1, 16));
  EXPECT_TRUE(k70B.withinDomain(2, 4)); // dp 4 behind tp 2
  EXPECT_FALSE(k70B.withinDomain(8, 32));
  EXPECT_FALSE(k70B.withinDomain(1, 3)); // groups of 3 straddle nodes of 8
}

} // namespace
