//===- StartTimesTest.cpp - clauses against brute force -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/StartTimes.h"

#include <gtest/gtest.h>

using namespace reckon::search;

namespace {

using Answer = StartTimes::Answer;
using Style = StartTimes::Style;

TEST(StartTimes, DelaysAgainstBruteForce) {
  // Candidates with gaps; every delay and every bound, in both styles.
  std::vector<int64_t> a{0, 2, 3, 7}, b{1, 4, 5};
  for (Style style : {Style::Folded, Style::Complete})
    for (int64_t delay = -8; delay <= 8; ++delay)
      for (int64_t bound = -1; bound <= 6; ++bound)
        for (bool same : {false, true}) {
          bool expected = false;
          for (int64_t x : a)
            for (int64_t y : b)
              expected |=
                  (same ? y == x + delay : y >= x + delay) && y <= bound;
          StartTimes times(style);
          auto first = times.add("a", a), second = times.add("b", b);
          if (same)
            times.shifted(second, first, delay);
          else
            times.after(second, first, delay);
          times.clause({times.by(second, bound)});
          ASSERT_EQ(times.check(), expected ? Answer::Yes : Answer::No)
              << delay << " " << bound << " " << same;
          if (expected) {
            int64_t x = times.start(first), y = times.start(second);
            EXPECT_TRUE(same ? y == x + delay : y >= x + delay);
            EXPECT_LE(y, bound);
          }
        }
}

TEST(StartTimes, GuardsAndAssumptions) {
  StartTimes times(Style::Folded);
  auto a = times.add("a", 0, 5), b = times.add("b", 0, 5);
  auto guard = times.variable("late");
  times.after(b, a, 4, guard);
  EXPECT_EQ(times.check({guard, times.by(b, 4)}), Answer::Yes);
  EXPECT_EQ(times.start(a), 0);
  EXPECT_EQ(times.start(b), 4);
  EXPECT_EQ(times.check({guard, times.by(b, 3)}), Answer::No);
  EXPECT_EQ(times.check({times.by(b, 0)}), Answer::Yes);
  times.clause({guard});
  EXPECT_EQ(times.check({times.by(b, 0)}), Answer::No);
  EXPECT_EQ(times.check({StartTimes::kFalse}), Answer::No);
}

TEST(StartTimes, BudgetEndsTheSearch) {
  // Nine pigeons in eight holes: no short proof.
  auto pigeons = [](StartTimes &times) {
    std::vector<StartTimes::Action> all;
    for (int i = 0; i < 9; ++i)
      all.push_back(times.add("p" + std::to_string(i), 0, 7));
    for (int i = 0; i < 9; ++i)
      for (int j = 0; j < i; ++j)
        for (int64_t t = 0; t < 8; ++t)
          // Not both at t.
          times.clause({StartTimes::negation(times.by(all[i], t)),
                        times.by(all[i], t - 1),
                        StartTimes::negation(times.by(all[j], t)),
                        times.by(all[j], t - 1)});
  };
  StartTimes small(Style::Folded);
  pigeons(small);
  small.setBudget(1000);
  EXPECT_EQ(small.check(), Answer::Unknown);
  uint64_t steps[2];
  for (uint64_t &count : steps) {
    StartTimes large(Style::Folded);
    pigeons(large);
    large.setBudget(100'000'000);
    EXPECT_EQ(large.check(), Answer::No);
    count = large.steps();
  }
  EXPECT_EQ(steps[0], steps[1]);
  EXPECT_GT(steps[0], 1000u);
}

TEST(StartTimes, SmtLib) {
  StartTimes times(Style::Complete);
  auto a = times.add("0F0", {0, 2}), b = times.add("1F0", {1, 3});
  times.after(b, a, 1);
  EXPECT_EQ(times.smtLib({times.by(b, 1)}, "two\nlines"),
            "; two\n; lines\n(set-logic QF_FD)\n"
            "(declare-fun |0F0@0| () Bool)\n"
            "(declare-fun |0F0@2| () Bool)\n"
            "(declare-fun |1F0@1| () Bool)\n"
            "(declare-fun |1F0@3| () Bool)\n"
            "(assert (or (not |0F0@0|) |0F0@2|))\n(assert |0F0@2|)\n"
            "(assert (or (not |1F0@1|) |1F0@3|))\n(assert |1F0@3|)\n"
            "(assert (or (not |1F0@1|) |0F0@0|))\n"
            "(assert (or (not |1F0@3|) |0F0@2|))\n"
            "(assert |1F0@1|)\n(check-sat)\n");
}

} // namespace
