//===- PipelineTest.cpp - closed forms against the simulated schedules ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Pipeline.h"

#include "passes/model/Schedule.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

/// Seconds of one rank's pass over one micro-batch.
struct Passes {
  double forward = 1, input = 1, weight = 1;
  double total() const { return forward + input + weight; }
};

/// Bubble of equal stages, simulated and by formula.
void compare(ScheduleKind kind, int64_t v, int64_t p, int64_t m,
             Passes one = {}) {
  ScheduleShape shape{.kind = kind, .p = p, .v = v, .m = m};
  ASSERT_EQ(whyNotSchedule(shape), "");
  auto chunks = static_cast<double>(v);
  double backward = one.input + one.weight;
  std::vector<StageDurations> stages(
      static_cast<size_t>(p * v),
      {one.forward / chunks, backward / chunks, one.weight / chunks});
  Timetable table = simulateSchedule(shape, stages, 0, false);
  double simulated = table.makespan - one.total() * static_cast<double>(m);
  std::vector<RankLoad> ranks(static_cast<size_t>(p),
                              {one.forward, backward, one.weight});
  EXPECT_NEAR(pipelineBubble(kind, v, m, ranks), simulated, 1e-9)
      << scheduleName(kind) << " p=" << p << " v=" << v << " m=" << m << " F "
      << one.forward << " I " << one.input << " W " << one.weight;
}

TEST(Pipeline, ClosedFormsEqualTheSimulation) {
  for (int64_t p : {2, 4, 8})
    for (int64_t rounds : {2, 3, 6}) {
      int64_t m = rounds * p;
      compare(ScheduleKind::GPipe, 1, p, m);
      compare(ScheduleKind::OneFOneB, 1, p, m);
      for (int64_t v : {2, 4})
        compare(ScheduleKind::Interleaved, v, p, m);
      compare(ScheduleKind::Bfs, 2, p, m);
      compare(ScheduleKind::ZbH1, 1, p, m);
    }
}

// Fewer micro-batches than ranks: the ramps are the same.
TEST(Pipeline, ClosedFormsHoldForFewMicroBatches) {
  for (int64_t m : {1, 2, 3}) {
    compare(ScheduleKind::GPipe, 1, 4, m);
    compare(ScheduleKind::OneFOneB, 1, 4, m);
  }
}

// Their orders are made for F = I = W. Where passes differ, the idle time is
// what the simulation shows: the formulas were read off it.
TEST(Pipeline, ZeroBubbleFormsEqualTheSimulation) {
  for (Passes one :
       {Passes{1, 1, 1}, Passes{1, 1.2, 0.8}, Passes{1, 1.5, 0.5},
        Passes{1, 1, 0.6}, Passes{1.2, 1, 1}, Passes{1, 0.8, 1.2},
        Passes{1, 1.4, 1}, Passes{1, 2, 1}, Passes{2, 1, 1}, Passes{0.5, 1, 1}})
    for (int64_t p : {4, 8}) {
      compare(ScheduleKind::ZbH1, 1, p, 4 * p, one);
      compare(ScheduleKind::ZbH2, 1, p, 4 * p, one);
      compare(ScheduleKind::ZbV, 2, p, 4 * p, one);
      compare(ScheduleKind::DualPipeV, 2, p, 4 * p, one);
    }
}

// Stages that differ: what is simulated lies within a few per cent of a step.
TEST(Pipeline, UnevenStagesAreNearTheSimulation) {
  int64_t m = 16;
  std::vector<double> forwards = {1, 1.1, 0.9, 1.3};
  std::vector<StageDurations> stages;
  std::vector<RankLoad> ranks;
  for (double f : forwards) {
    stages.push_back({f, 2 * f, f});
    ranks.push_back({f, 2 * f, f});
  }
  for (ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::OneFOneB}) {
    Timetable table = simulateSchedule(kind, m, stages);
    double formula =
        3 * 1.3 * static_cast<double>(m) + pipelineBubble(kind, 1, m, ranks);
    EXPECT_NEAR(formula / table.makespan, 1, 0.02) << scheduleName(kind);
  }
}

TEST(Pipeline, PlacementIsThatOfTheSchedules) {
  for (ScheduleKind kind : {ScheduleKind::Interleaved, ScheduleKind::ZbV})
    for (int64_t stage = 0; stage < 8; ++stage)
      EXPECT_EQ(pipelineRank(kind, 4, stage), rankOfStage(kind, 4, 2, stage));
}

// p = 4, v = 4, m = 16: 3/64 of the work, 4.69 %.
TEST(Pipeline, BubbleOfTheSeed) {
  std::vector<RankLoad> ranks(4, {1, 2, 1});
  double bubble = pipelineBubble(ScheduleKind::Interleaved, 4, 16, ranks);
  EXPECT_NEAR(bubble / (16 * 3), 0.046875, 1e-12);
}

} // namespace
