//===- ExecPartsTest.cpp - learning rates and options ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Dump.h"
#include "runtime/exec/LearningRate.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace reckon;
using namespace reckon::exec;

static plan::OptimizerT optimizer(const std::string &schedule) {
  plan::OptimizerT o;
  o.lr = 1.0;
  o.min_lr = 0.1;
  o.warmup_steps = 10;
  o.train_steps = 110;
  o.decay_steps = 20;
  o.schedule = schedule;
  return o;
}

TEST(LearningRate, WarmsUpInEverySchedule) {
  for (const char *schedule : {"constant", "linear", "cosine", "wsd"}) {
    plan::OptimizerT o = optimizer(schedule);
    EXPECT_TRUE(checkSchedule(o).ok());
    EXPECT_DOUBLE_EQ(learningRate(o, 1), 0.1);
    EXPECT_DOUBLE_EQ(learningRate(o, 10), 1.0);
    o.warmup_steps = 0;
    EXPECT_GT(learningRate(o, 1), 0.98) << schedule;
  }
}

TEST(LearningRate, DecaysAsItsFormulaSays) {
  EXPECT_DOUBLE_EQ(learningRate(optimizer("constant"), 100), 1.0);
  EXPECT_DOUBLE_EQ(learningRate(optimizer("linear"), 60), 0.55);
  EXPECT_DOUBLE_EQ(learningRate(optimizer("cosine"), 60), 0.55);
  EXPECT_NEAR(learningRate(optimizer("cosine"), 35),
              0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2, 1e-15);
  EXPECT_DOUBLE_EQ(learningRate(optimizer("wsd"), 90), 1.0);
  EXPECT_DOUBLE_EQ(learningRate(optimizer("wsd"), 100), 0.55);
  for (const char *schedule : {"linear", "cosine", "wsd"})
    for (uint64_t step : {110, 111, 5000})
      EXPECT_NEAR(learningRate(optimizer(schedule), step), 0.1, 1e-15)
          << schedule;
}

TEST(LearningRate, RefusesUnknownSchedules) {
  Status status = checkSchedule(optimizer("zigzag"));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ExitCode::Incompatible);
}

TEST(Dump, ParsesItsOption) {
  auto request = parseDump("12:weights,gradients", "d");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->step, 12);
  EXPECT_TRUE(request->weights && request->gradients);
  EXPECT_EQ(request->directory, "d");
  EXPECT_TRUE(parseDump("0:weights", "d").ok());
  for (const char *bad :
       {"", "3", ":weights", "x:weights", "3:", "3:moments", "0:gradients",
        "-1:weights", "3 :weights", "99999999999999999999:weights"}) {
    auto refused = parseDump(bad, "d");
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code, ExitCode::BadSpec);
  }
  EXPECT_FALSE(parseDump("3:weights", "").ok());
}
