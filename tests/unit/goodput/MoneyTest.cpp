//===- MoneyTest.cpp - what a point of MFU and a failure cost -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Analysis.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

using namespace reckon::goodput;

namespace {

TEST(Money, APointOfMfu) {
  // 1024 x $2.5 x 24 h = $61 440 a day. 30 d / 42 = 0.7143 d = $43 886; 42 ->
  // 43: 30 x (1 - 42/43) = 0.6977 d = $42 865.
  MfuPoint p = mfuPoint(42, 30, 1024, 2.5);
  EXPECT_DOUBLE_EQ(p.dollarsPerDay, 61440);
  EXPECT_NEAR(p.derivativeDays, 0.7143, 5e-5);
  EXPECT_NEAR(p.derivativeDollars(), 43886, 0.5);
  EXPECT_NEAR(p.stepDays, 0.698, 5e-4);
  EXPECT_NEAR(p.stepDollars(), 42865, 0.5);
  // 41 -> 42 saves 30 x (1 - 41/42) = 0.714 d of a job of 30 d at 41 %.
  EXPECT_NEAR(mfuPoint(41, 30, 1024, 2.5).stepDays, 0.714, 5e-4);
}

Inputs example() {
  Inputs in;
  in.gpus = 16384;
  in.gpuMtbfHours = 50000;
  in.pricePerGpuHour = 2.5;
  in.trainSteps = 100000;
  in.plan.stepSeconds = 4;
  in.plan.mfu = 0.42;
  in.async = false;
  in.terms = {50000 * 3600.0 / 16384, 300, 600, 300, 120};
  return in;
}

TEST(Money, TrainingTakesItsStepsOverGoodput) {
  Inputs in = example();
  double g = goodput(in.terms, *bestInterval(in.terms));
  TrainingCost cost = trainingCost(in);
  EXPECT_DOUBLE_EQ(cost.productiveSeconds, 4e5);
  ASSERT_TRUE(cost.wallSeconds);
  EXPECT_NEAR(*cost.wallSeconds, 4e5 / g, 1e-6);
  EXPECT_NEAR(cost.dollars, *cost.wallSeconds / 3600 * 2.5 * 16384, 1e-3);
}

TEST(Money, WithoutProgressThereIsNoEnd) {
  Inputs in = example();
  in.terms.detect = in.terms.mtbf;
  EXPECT_FALSE(trainingCost(in).wallSeconds);
  Analysis a = analyse(in, {});
  EXPECT_FALSE(a.interval);
  EXPECT_NE(analysisText(a).find("no forward progress"), std::string::npos);
  auto json = nlohmann::json::parse(analysisJson(a));
  EXPECT_FALSE(json["forward_progress"]);
  EXPECT_TRUE(json["training"]["wall_s"].is_null());
}

// G at M and at 1.1 M, each at its own best interval; the same points of the
// cluster's price.
TEST(Money, RarerFailuresAreAGainToo) {
  Inputs in = example();
  for (const Gain &gain : gains(in, {})) {
    if (gain.term != "mtbf")
      continue;
    Terms rarer = in.terms;
    rarer.mtbf *= 1.1;
    double points = 100 * (goodput(rarer, *bestInterval(rarer)) -
                           goodput(in.terms, *bestInterval(in.terms)));
    EXPECT_GT(points, 0.5);
    EXPECT_NEAR(gain.points, points, 1e-9);
    EXPECT_NEAR(gain.dollarsPer30Days, points / 100 * 2.5 * 16384 * 720, 1e-3);
    return;
  }
  FAIL() << "no gain from rarer failures";
}

TEST(Money, TheReportHasEveryPart) {
  Analysis a = analyse(example(), {.failures = 1000});
  std::string text = analysisText(a);
  for (const char *part :
       {"M     = M_gpu / N = 50000 h / 16384 = 3.052 h", "71.02 %",
        "Shares of wall time", "What one change alone would gain",
        "On other numbers of devices", "goodput", "as the slope"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  auto json = nlohmann::json::parse(analysisJson(a));
  double sum = 0;
  for (double share : json["shares"])
    sum += share;
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(json["simulations"].size(), 3u);
  // The four terms and rarer failures.
  EXPECT_EQ(json["gains"].size(), 5u);
  double last = 1e9;
  for (const auto &gain : json["gains"]) {
    EXPECT_LE(gain["points"], last);
    last = gain["points"];
  }
  EXPECT_EQ(json["by_size"].size(), 7u); // 2 048 to 131 072
}

} // namespace
