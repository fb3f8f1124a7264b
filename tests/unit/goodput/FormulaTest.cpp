//===- FormulaTest.cpp - identities of the goodput formula ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

using namespace reckon::goodput;

namespace {

Terms randomTerms(std::mt19937_64 &random) {
  auto decade = [&](double low, double high) {
    std::uniform_real_distribution<double> exponent(std::log(low),
                                                    std::log(high));
    return std::exp(exponent(random));
  };
  Terms terms;
  terms.mtbf = decade(600, 1e6);
  terms.delta = decade(0.01, 3600);
  terms.detect = decade(1, 1200);
  terms.restart = decade(1, 600);
  terms.load = decade(1, 600);
  return terms;
}

TEST(Formula, UsefulSavedAndLostAddUpToOne) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    Terms t = randomTerms(random);
    double tau = youngInterval(t);
    double g = goodput(t, tau);
    // G + G delta/tau + (T + tau/2)/M = 1. Terms far above one (M below T)
    // are rounded relative to their size.
    double lost = (t.recovery() + tau / 2) / t.mtbf;
    double scale = std::max(1.0, lost);
    EXPECT_NEAR(g + g * t.delta / tau + lost, 1, 1e-12 * scale);
    EXPECT_NEAR(shares(t, tau).sum(), 1, 1e-12 * scale);
  }
}

TEST(Formula, TheBestIntervalIsTheBest) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> factor(-3, 3);
  int tried = 0;
  for (int i = 0; i < 2000; ++i) {
    Terms t = randomTerms(random);
    std::optional<double> best = bestInterval(t);
    ASSERT_EQ(best.has_value(), t.mtbf > t.recovery());
    if (!best)
      continue;
    ++tried;
    double most = goodput(t, *best);
    for (int j = 0; j < 50; ++j)
      EXPECT_GE(most + 1e-12 * std::fabs(most),
                goodput(t, *best * std::exp(factor(random))));
    EXPECT_GE(most + 1e-12 * std::fabs(most), goodput(t, youngInterval(t)));
  }
  EXPECT_GT(tried, 1000);
}

TEST(Formula, YoungsIntervalWastesLeastToFirstOrder) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> factor(-3, 3);
  for (int i = 0; i < 1000; ++i) {
    Terms t = randomTerms(random);
    double tau = youngInterval(t);
    EXPECT_NEAR(firstOrderWaste(t, tau), leastWaste(t), 1e-12 * leastWaste(t));
    EXPECT_GE(firstOrderWaste(t, tau * std::exp(factor(random))),
              leastWaste(t) * (1 - 1e-12));
  }
}

TEST(Formula, NoIntervalMakesProgressWhenFailuresOutrunTheRestart) {
  Terms t{
      .mtbf = 1000, .delta = 10, .detect = 600, .restart = 300, .load = 100};
  EXPECT_FALSE(bestInterval(t)); // T = 1000 s = M
  EXPECT_FALSE(makesProgress(t));
  t.load = 99;
  EXPECT_TRUE(bestInterval(t));
  // tau* = sqrt(100 + 20) - 10 = 0.954 s: G > 0, however little.
  EXPECT_NEAR(*bestInterval(t), 0.954451, 1e-6);
  EXPECT_TRUE(makesProgress(t));
}

TEST(Formula, RenewalApproachesTheFormulaWhenFailuresAreRare) {
  // The first-order error is of the order (T + tau + delta)^2 / M^2.
  Terms t{.mtbf = 1e7, .delta = 10, .detect = 60, .restart = 30, .load = 60};
  double tau = *bestInterval(t);
  double x = (t.recovery() + tau + t.delta) / t.mtbf;
  EXPECT_NEAR(renewalGoodput(t, tau), goodput(t, tau), x * x);
}

} // namespace
