//===- TimeTest.cpp - the parts of a step add up
//-----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Time.h"

#include "passes/model/Flops.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

const ModelDims k70B{.vocab = 128256,
                     .hidden = 8192,
                     .ffn = 28672,
                     .layers = 80,
                     .heads = 64,
                     .kvHeads = 8,
                     .headDim = 128,
                     .sequence = 8192};
const ClusterSpeeds kH100{.peakFlops = 989.4e12,
                          .memoryBandwidth = 3350e9,
                          .intraBandwidth = 450e9,
                          .interBandwidth = 50e9,
                          .nodes = 128,
                          .devicesPerNode = 8,
                          .pricePerDeviceHour = 2.5};

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

TEST(StepTime, PartsAddUp) {
  for (Recompute recompute : {Recompute::None, Recompute::Full}) {
    StepTime t = stepTime(k70B, thousand(recompute), kH100, 512);
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
  StepTime t = stepTime(k70B, thousand(Recompute::Full), kH100, 512);
  TokenFlops flops = tokenFlops(k70B, Recompute::Full);
  double tokens = 512.0 * 8192;
  EXPECT_DOUBLE_EQ(t.ideal, flops.model * tokens / (1024 * 989.4e12));
  EXPECT_DOUBLE_EQ(t.tokensPerSecond, tokens / t.step);
  EXPECT_DOUBLE_EQ(t.mfu, t.ideal / t.step);
  EXPECT_DOUBLE_EQ(t.hfu / t.mfu, flops.hardware / flops.model);
  // Published runs of this size reach 35 to 45 % without recomputation.
  double mfu = stepTime(k70B, thousand(Recompute::None), kH100, 512).mfu;
  EXPECT_GT(mfu, 0.25);
  EXPECT_LT(mfu, 0.50);
}

TEST(StepTime, BytesOfARing) {
  StepTime t = stepTime(k70B, thousand(Recompute::None), kH100, 512);
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
  EXPECT_EQ(find(stepTime(k70B, {.tp = 8, .pp = 1, .layout = {80}},
                          {.peakFlops = 1e15,
                           .memoryBandwidth = 1e12,
                           .intraBandwidth = 1e11,
                           .interBandwidth = 1e10,
                           .nodes = 1,
                           .devicesPerNode = 8},
                          1),
                 "send_recv"),
            nullptr);
}

TEST(StepTime, FasterPartsHelp) {
  model::Choice choice = thousand(Recompute::None);
  double base = stepTime(k70B, choice, kH100, 512).step;
  for (double ClusterSpeeds::*speed :
       {&ClusterSpeeds::peakFlops, &ClusterSpeeds::memoryBandwidth,
        &ClusterSpeeds::intraBandwidth, &ClusterSpeeds::interBandwidth}) {
    ClusterSpeeds faster = kH100;
    faster.*speed *= 2;
    EXPECT_LT(stepTime(k70B, choice, faster, 512).step, base);
  }
  EXPECT_GT(stepTime(k70B, thousand(Recompute::Full), kH100, 512).step, base);
  // The same work in half as many, twice as large micro-batches: more bubble.
  choice.microBatch = 2;
  choice.numMicroBatches = 8;
  StepTime coarse = stepTime(k70B, choice, kH100, 512);
  EXPECT_GT(coarse.bubble,
            stepTime(k70B, thousand(Recompute::None), kH100, 512).bubble);
}

TEST(ClusterSpeeds, GroupsWithinANode) {
  EXPECT_TRUE(kH100.withinNode(1, 8));
  EXPECT_FALSE(kH100.withinNode(1, 16));
  EXPECT_TRUE(kH100.withinNode(2, 4)); // dp 4 behind tp 2
  EXPECT_FALSE(kH100.withinNode(8, 32));
  EXPECT_FALSE(kH100.withinNode(1, 3)); // groups of 3 straddle nodes of 8
}

} // namespace
