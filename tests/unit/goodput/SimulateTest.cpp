//===- SimulateTest.cpp - the simulation against the formulas -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Simulate.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace reckon::goodput;

namespace {

Terms scenario(char name, double gpus) {
  Terms t;
  if (name == 'A')
    t = {0, 300, 600, 300, 120};
  else if (name == 'B')
    t = {0, 10, 600, 300, 120};
  else if (name == 'C')
    t = {0, 10, 60, 30, 60};
  else
    t = {0, 0.5, 15, 10, 20};
  t.mtbf = jobMtbf(50000 * 3600.0, gpus);
  return t;
}

class Scenario : public testing::TestWithParam<char> {};

TEST_P(Scenario, AgreesWithBothFormulas) {
  for (double gpus : {1024.0, 4096.0, 16384.0})
    for (uint64_t seed : {1, 2, 3}) {
      Terms t = scenario(GetParam(), gpus);
      double tau = youngInterval(t);
      Simulation s = simulate(t, tau, 20000, seed);
      double formula = 100 * goodput(t, tau);
      double simulated = 100 * s.shares.useful;
      EXPECT_GE(formula, 70);
      EXPECT_NEAR(simulated, formula, formula >= 94 ? 0.1 : 1.0)
          << GetParam() << " " << gpus << " " << seed;
      // 20 000 failures: the relative error of the wall time is 1/sqrt(20000) =
      // 0.7 %, that of the lost share about the same.
      double lost = 100 - simulated;
      EXPECT_NEAR(simulated, 100 * renewalGoodput(t, tau), 0.025 * lost)
          << GetParam() << " " << gpus << " " << seed;
      EXPECT_NEAR(s.shares.sum(), 1, 1e-9);
      EXPECT_NEAR(s.wall, 20000 * t.mtbf, 0.03 * s.wall);
    }
}

INSTANTIATE_TEST_SUITE_P(Simulate, Scenario,
                         testing::Values('A', 'B', 'C', 'D'));

TEST(Simulate, TheFormulaIsPessimisticWhereMuchIsLost) {
  // A at 16 384 devices: M = 10 986 s, tau = 2567 s, T = 1020 s. E =
  // 10986 e^0.09284 (e^0.26102 - 1) = 10986 x 1.09729 x 0.29825 = 3595 s, so
  // 2567 / 3595 = 71.4 %, against 70.8 % of the formula.
  Terms t = scenario('A', 16384);
  double tau = youngInterval(t);
  EXPECT_NEAR(100 * renewalGoodput(t, tau), 71.4, 0.05);
  double mean = 0;
  for (uint64_t seed : {1, 2, 3})
    mean += 100 * simulate(t, tau, 20000, seed).shares.useful / 3;
  EXPECT_NEAR(mean, 71.45, 0.25);
}

TEST(Simulate, OneSeedOneResult) {
  Terms t = scenario('B', 16384);
  Simulation first = simulate(t, 500, 1000, 7);
  Simulation second = simulate(t, 500, 1000, 7);
  EXPECT_EQ(first.wall, second.wall);
  EXPECT_EQ(first.shares.useful, second.shares.useful);
  EXPECT_EQ(first.checkpoints, second.checkpoints);
  EXPECT_NE(first.wall, simulate(t, 500, 1000, 8).wall);
}

TEST(Simulate, WritesInTheBackgroundMayBeLostToo) {
  // A checkpoint that counts tau later loses one interval more a failure: tau/M
  // of the time, 500/10986 = 4.6 points here, less what saves get back.
  Terms t = scenario('C', 16384);
  double now = simulate(t, 500, 20000, 1).shares.rollback;
  double late = simulate(t, 500, 20000, 1, 500).shares.rollback;
  EXPECT_NEAR(late - now, 500 / t.mtbf, 0.006);
}

TEST(Simulate, FailuresThatOutrunTheRecoveryLeaveLittle) {
  // M = 100 s, T = 300 s: a recovery passes undisturbed once in e^3 times.
  Terms t{.mtbf = 100, .delta = 1, .detect = 100, .restart = 100, .load = 100};
  Simulation s = simulate(t, 20, 20000, 1);
  EXPECT_NEAR(s.shares.useful, renewalGoodput(t, 20), 0.004);
  EXPECT_LT(s.shares.useful, 0.05);
}

} // namespace
