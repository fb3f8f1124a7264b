//===- SchedulesTest.cpp - every named schedule against its formulas ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace reckon;
using namespace reckon::model;

namespace {

using Kind = ScheduleKind;

constexpr Kind kAll[] = {Kind::GPipe, Kind::OneFOneB, Kind::Interleaved,
                         Kind::Bfs,   Kind::ZbH1,     Kind::ZbH2,
                         Kind::ZbV,   Kind::DualPipeV};

/// Calls `body` for every defined shape in a box of small sizes.
template <typename Body> void forShapes(Body body) {
  for (Kind kind : kAll)
    for (int64_t p : {1, 2, 3, 4, 8})
      for (int64_t v : {1, 2, 3, 4})
        for (int64_t m : {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 20, 24, 33}) {
          ScheduleShape shape{kind, p, v, m};
          if (whyNotSchedule(shape).empty())
            body(shape);
        }
}

std::string text(const ScheduleShape &shape) {
  return std::string(scheduleName(shape.kind)) + " p" +
         std::to_string(shape.p) + " v" + std::to_string(shape.v) + " m" +
         std::to_string(shape.m) + " g" + std::to_string(shape.group);
}

std::string text(const std::vector<ComputeAction> &order) {
  std::string line;
  for (const ComputeAction &action : order)
    line += std::string(line.empty() ? "" : " ") + action.pass +
            std::to_string(action.microBatch) + (action.chunk ? "'" : "");
  return line;
}

/// Passes of a rank take f, i and w; a chunk takes 1/v of them.
std::vector<StageDurations> equalStages(const ScheduleShape &shape, double f,
                                        double i, double w) {
  auto v = static_cast<double>(shape.v);
  return std::vector<StageDurations>(shape.stages(),
                                     {f / v, (i + w) / v, w / v});
}

TEST(Schedules, ReasonsForUndefinedShapes) {
  auto why = [](Kind kind, int64_t p, int64_t v, int64_t m, int64_t g = 0) {
    return whyNotSchedule({kind, p, v, m, g});
  };
  EXPECT_EQ(why(Kind::OneFOneB, 4, 2, 8), "needs 1 chunk a rank, got 2");
  EXPECT_EQ(why(Kind::Interleaved, 4, 1, 8),
            "needs at least 2 chunks a rank, got 1");
  EXPECT_EQ(why(Kind::Interleaved, 4, 2, 3),
            "needs at least 4 micro-batches, got 3");
  EXPECT_EQ(why(Kind::Interleaved, 4, 2, 9, 4),
            "needs a last group of at least 4 micro-batches, got 1");
  EXPECT_EQ(why(Kind::Interleaved, 4, 2, 9, 3),
            "needs groups of 4 to 9 micro-batches, got 3");
  EXPECT_EQ(why(Kind::Interleaved, 4, 2, 9, 5), "");
  EXPECT_EQ(why(Kind::ZbV, 4, 1, 8), "needs 2 chunks a rank, got 1");
  EXPECT_EQ(why(Kind::DualPipeV, 4, 2, 7),
            "needs at least 8 micro-batches, got 7");
  // 9 mod 4 = 1 < 4, 9 mod 5 = 4.
  EXPECT_EQ(defaultGroup(4, 9), 5);
  EXPECT_EQ(defaultGroup(4, 8), 4);
  EXPECT_EQ(defaultGroup(4, 7), 7); // 7 mod 5 = 2, 7 mod 6 = 1
}

TEST(Schedules, OrdersByHand) {
  auto order = [](Kind kind, int64_t p, int64_t v, int64_t m, int64_t rank) {
    return text(scheduleOrder({kind, p, v, m}, rank));
  };
  // Rank 0 of 2 runs 2 (2-1) + (2-1) 2 = 4 forwards ahead; ' is chunk 1.
  EXPECT_EQ(order(Kind::Interleaved, 2, 2, 4, 0),
            "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
  EXPECT_EQ(order(Kind::Interleaved, 2, 2, 4, 1),
            "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
  EXPECT_EQ(order(Kind::Bfs, 2, 2, 2, 1), "F0 F1 F0' F1' B0' B1' B0 B1");
  // Rank 0 keeps back no weight gradient, and merges I and W.
  EXPECT_EQ(order(Kind::ZbH1, 3, 1, 4, 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order(Kind::ZbH1, 3, 1, 4, 1),
            "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
  EXPECT_EQ(order(Kind::ZbH1, 3, 1, 4, 2),
            "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
  // 2 (2-0) - 1 = 3 and 1 forwards ahead; rank 1 keeps back two.
  EXPECT_EQ(order(Kind::ZbH2, 2, 1, 4, 0), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(order(Kind::ZbH2, 2, 1, 4, 1),
            "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
  // n = max(3, 3). Rank 0: 3 F0, nothing, 2 (F1 I1 W1), 1 loop without F0,
  // nothing, 2 B0.
  EXPECT_EQ(order(Kind::ZbV, 2, 2, 3, 0),
            "F0 F1 F2 F0' I0' W0' F1' I1' W1' B0 F2' I2' W2' B1 B2");
  // Rank 1: 1 F0; F1 F0; 1 (F1 I1 W1); 1 loop; I0 I1; I0 W0; W1 W0.
  EXPECT_EQ(order(Kind::ZbV, 2, 2, 3, 1),
            "F0 F0' F1 F1' I0' W0' F2 I0 W0 F2' I1' W1' I1 I2' I2 W1 W2' W2");
  // q = 0: (F0 F1) x 2, then m-2p+r+1 = 2 (F0 B1 F1 B0); B1 B0 whole, I1 I0.
  EXPECT_EQ(order(Kind::DualPipeV, 2, 2, 4, 1),
            "F0 F0' F1 F1' F2 B0' F2' B0 F3 B1' F3' B1 B2' B2 I3' I3 W3' W3");
}

TEST(Schedules, EveryActionOnceInOrder) {
  forShapes([](const ScheduleShape &shape) {
    for (int64_t rank = 0; rank < shape.p; ++rank) {
      std::vector<int> state(shape.v * shape.m, 0);
      for (ComputeAction action : scheduleOrder(shape, rank)) {
        int &at = state[action.chunk * shape.m + action.microBatch];
        // 0 -F-> 1 -I-> 2 -W-> 3, 1 -B-> 3
        int from = action.pass == 'F' ? 0 : action.pass == 'W' ? 2 : 1;
        ASSERT_EQ(at, from) << text(shape) << " rank " << rank;
        at = action.pass == 'F' ? 1 : action.pass == 'I' ? 2 : 3;
      }
      for (int at : state)
        ASSERT_EQ(at, 3) << text(shape) << " rank " << rank;
    }
  });
}

TEST(Schedules, PlacementIsStraightOrAV) {
  // p = 3, v = 2. Straight: 0 1 2 0 1 2. V: 0 1 2 2 1 0.
  int64_t straight[] = {0, 1, 2, 0, 1, 2}, vee[] = {0, 1, 2, 2, 1, 0};
  for (int64_t stage = 0; stage < 6; ++stage) {
    EXPECT_EQ(rankOfStage(Kind::Interleaved, 3, 2, stage), straight[stage]);
    EXPECT_EQ(rankOfStage(Kind::ZbV, 3, 2, stage), vee[stage]);
    EXPECT_EQ(rankOfStage(Kind::DualPipeV, 3, 2, stage), vee[stage]);
  }
  forShapes([](const ScheduleShape &shape) {
    PipelineOrders orders = makeOrders(shape);
    for (int64_t stage = 0; stage < shape.stages(); ++stage) {
      int64_t rank = rankOfStage(shape.kind, shape.p, shape.v, stage);
      int64_t chunk = chunkOfStage(shape.kind, shape.p, shape.v, stage);
      ASSERT_EQ(orders.rankOfStage[stage], rank);
      ASSERT_EQ(orders.chunkOfStage[stage], chunk);
      ASSERT_EQ(stageOfChunk(shape.kind, shape.p, shape.v, rank, chunk), stage);
    }
  });
}

/// Passes of a whole rank: the idle time of the busiest rank against
/// idleFormula().
TEST(Schedules, IdleTimeFollowsTheFormulas) {
  int checked = 0;
  struct {
    double f, i, w;
  } passes[] = {{1, 1, 1}, {2, 2, 1}, {2, 3, 1.5}, {1.5, 1, 1}, {1, 2, 0.25}};
  forShapes([&](const ScheduleShape &shape) {
    for (auto [f, i, w] : passes) {
      auto idle = idleFormula(shape, f, i, w);
      if (!idle)
        continue;
      Timetable table =
          simulateSchedule(shape, equalStages(shape, f, i, w), 0, false);
      ASSERT_NEAR(table.makespan - static_cast<double>(shape.m) * (f + i + w),
                  *idle, 1e-9)
          << text(shape) << " " << f << " " << i << " " << w;
      ++checked;
    }
  });
  EXPECT_GT(checked, 500);
}

TEST(Schedules, IllegalGroupsWouldWaste) {
  // p = 4, v = 2, F = 1, B = 2: 3 (4-1) / 2 = 4.5 idle for legal groups.
  for (auto [m, g] : {std::pair{9, 5}, {10, 6}, {14, 5}, {8, 4}, {16, 8}}) {
    ScheduleShape shape{Kind::Interleaved, 4, 2, m, g};
    ASSERT_EQ(whyNotSchedule(shape), "");
    Timetable table = simulateSchedule(shape, equalStages(shape, 1, 1, 1));
    EXPECT_NEAR(table.makespan - 3 * m, 4.5, 1e-9) << m << " " << g;
  }
}

TEST(Schedules, ZeroBubbleRanksDoNotWait) {
  for (int64_t p : {2, 3, 4, 8}) {
    ScheduleShape v{Kind::ZbV, p, 2, 2 * p - 1};
    EXPECT_NEAR(simulateSchedule(v, equalStages(v, 1, 1, 1)).idleInSpan, 0,
                1e-9)
        << text(v);
    // ZB-H2 needs 2p-1 micro-batches ahead on rank 0; each that lacks leaves
    // a unit idle.
    for (int64_t m = 1; m <= 3 * p; ++m) {
      ScheduleShape h2{Kind::ZbH2, p, 1, m};
      auto lacking = static_cast<double>(std::max<int64_t>(0, 2 * p - 1 - m));
      EXPECT_NEAR(simulateSchedule(h2, equalStages(h2, 1, 1, 1)).idleInSpan,
                  lacking, 1e-9)
          << text(h2);
    }
  }
}

TEST(Schedules, ZbvWithSmallSteps) {
  // The fixed order idles 4 units with 3 micro-batches and 2 with 5.
  ScheduleShape three{Kind::ZbV, 4, 2, 3}, five{Kind::ZbV, 4, 2, 5};
  EXPECT_NEAR(simulateSchedule(three, equalStages(three, 1, 1, 1)).idleInSpan,
              4, 1e-9);
  EXPECT_NEAR(simulateSchedule(five, equalStages(five, 1, 1, 1)).idleInSpan, 2,
              1e-9);
}

TEST(Schedules, PeaksFollowTheFormulas) {
  forShapes([](const ScheduleShape &shape) {
    for (int64_t rank = 0; rank < shape.p; ++rank) {
      auto order = scheduleOrder(shape, rank);
      InFlight all = inFlight(order, shape.v);
      // Few micro-batches leave holes in the order of ZBV and ZB-H2.
      bool holes = (shape.kind == Kind::ZbV || shape.kind == Kind::ZbH2) &&
                   shape.m < 2 * shape.p;
      if (holes)
        ASSERT_LE(all.peak, peakFormula(shape, rank)) << text(shape);
      else
        ASSERT_EQ(all.peak, peakFormula(shape, rank)) << text(shape);
      ASSERT_EQ(all.peak, peakInFlight(order));
      int64_t most = 0;
      for (const auto &moment : all.maximal) {
        int64_t sum = 0;
        for (const LiveStash &chunk : moment)
          sum += chunk.toWeight;
        most = std::max(most, sum);
      }
      ASSERT_EQ(most, all.peak) << text(shape);
    }
  });
}

TEST(Schedules, InterleavedChunkCounts) {
  auto peaks = [](int64_t p, int64_t v, int64_t m, int64_t g) {
    std::vector<int64_t> all;
    for (int64_t rank = 0; rank < p; ++rank)
      all.push_back(inFlight({Kind::Interleaved, p, v, m, g}, rank).peak);
    return all;
  };
  // 2 (p-1-r) + (v-1) g + 1
  EXPECT_EQ(peaks(4, 2, 16, 4), (std::vector<int64_t>{11, 9, 7, 5}));
  EXPECT_EQ(peaks(4, 2, 16, 8), (std::vector<int64_t>{15, 13, 11, 9}));
  EXPECT_EQ(peaks(8, 3, 16, 8),
            (std::vector<int64_t>{31, 29, 27, 25, 23, 21, 19, 17}));
}

TEST(Schedules, PassesHoldWhatTheyRead) {
  // ZB-H1, p = 4: what I still reads is held as long as under 1F1B.
  for (int64_t rank = 0; rank < 4; ++rank) {
    const InFlight &held = inFlight({Kind::ZbH1, 4, 1, 16}, rank);
    EXPECT_EQ(held.peak, 4);
    EXPECT_EQ(held.peakToInput, 4 - rank);
  }
  // F0 I0 F1 I1 W0 W1: at most one F-I stash, two others at I1.
  std::vector<ComputeAction> order{{'F', 0}, {'I', 0}, {'F', 1},
                                   {'I', 1}, {'W', 0}, {'W', 1}};
  InFlight held = inFlight(order, 1);
  EXPECT_EQ(held.peakToInput, 1);
  EXPECT_EQ(held.maximal, (std::vector<std::vector<LiveStash>>{{{1, 2, 2}}}));
  // Two chunks whose peaks do not meet: F0 B0, then F0' B0'.
  std::vector<ComputeAction> apart{
      {'F', 0, 0}, {'B', 0, 0}, {'F', 0, 1}, {'B', 0, 1}};
  EXPECT_EQ(inFlight(apart, 2).maximal,
            (std::vector<std::vector<LiveStash>>{{{0, 0, 0}, {1, 1, 0}},
                                                 {{1, 1, 0}, {0, 0, 0}}}));
}

TEST(Schedules, LiveVectorsDoNotDependOnLongSteps) {
  for (Kind kind : kAll)
    for (int64_t p : {2, 4, 8})
      for (int64_t v : {1, 2, 4})
        for (int64_t m : {40, 61, 100}) {
          ScheduleShape shape{kind, p, v, m};
          if (!whyNotSchedule(shape).empty())
            continue;
          for (int64_t rank = 0; rank < p; ++rank) {
            InFlight whole = inFlight(scheduleOrder(shape, rank), v);
            const InFlight &fast = inFlight(shape, rank);
            ASSERT_EQ(whole.peak, fast.peak) << text(shape) << " " << rank;
            ASSERT_EQ(whole.peakToInput, fast.peakToInput);
            ASSERT_EQ(whole.maximal, fast.maximal)
                << text(shape) << " " << rank;
          }
        }
  // Rows of maximal vectors: 28 in all for p = 4, v = 4; 104 for p = 8, v = 4;
  // 144 for p = 16, v = 2.
  auto rows = [](int64_t p, int64_t v) {
    size_t all = 0;
    for (int64_t rank = 0; rank < p; ++rank)
      all += inFlight({Kind::Interleaved, p, v, 16384}, rank).maximal.size();
    return all;
  };
  EXPECT_EQ(rows(4, 4), 28u);
  EXPECT_EQ(rows(8, 4), 104u);
  EXPECT_EQ(rows(16, 2), 144u);
}

TEST(Schedules, BubbleIsTheSimulatedOne) {
  forShapes([](const ScheduleShape &shape) {
    std::vector<StageDurations> units(shape.stages());
    ASSERT_NEAR(scheduleBubble(shape),
                simulateSchedule(shape, units).bubbleFraction, 1e-9)
        << text(shape);
  });
  // 70B of the source text: p = 4, v = 4, m = 16: 3 / 64 = 4.69 %.
  EXPECT_NEAR(scheduleBubble({Kind::Interleaved, 4, 4, 16}), 3.0 / 64, 1e-12);
}

TEST(Schedules, LongStepsExtrapolate) {
  for (Kind kind : kAll)
    for (int64_t v : {1, 2, 4})
      for (double transfer : {0.0, 0.25})
        for (int64_t m : {250, 401, 480}) {
          ScheduleShape shape{kind, 4, v, m};
          if (!whyNotSchedule(shape).empty())
            continue;
          std::vector<StageDurations> durations(shape.stages());
          for (int64_t s = 0; s < shape.stages(); ++s)
            durations[s] = {1 + 0.125 * static_cast<double>(s % 3), 2.25, 0.75};
          double exact =
              simulateSchedule(shape, durations, transfer, false).makespan;
          EXPECT_NEAR(scheduleMakespan(shape, durations, transfer), exact,
                      1e-3 * exact)
              << text(shape) << " " << transfer;
        }
}

TEST(Schedules, SimulationIsFast) {
  // 16 * 8 * 2048 * 2 = 524288 actions; a second is twenty times the target.
  ScheduleShape shape{Kind::Interleaved, 16, 8, 2048};
  std::vector<StageDurations> units(shape.stages());
  auto begin = std::chrono::steady_clock::now();
  Timetable table = simulateSchedule(shape, units, 0, false);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_NEAR(table.bubbleFraction, 15.0 / 8 / 2048, 1e-12);
  EXPECT_LT(took.count(), 1.0);
  RecordProperty("milliseconds", std::to_string(took.count() * 1e3));
}

TEST(Schedules, TransferTimesAsWrittenDown) {
  // p = 8, m = 32, F = I = W = 1 a rank; a transfer takes 0.25 of a rank's F.
  // Makespans of an independent simulator whose channels carry one message at
  // a time; here a channel carries any number, so none may be later.
  struct {
    Kind kind;
    int64_t v, g;
    double makespan;
  } rows[] = {
      {Kind::OneFOneB, 1, 0, 134},      {Kind::Interleaved, 2, 8, 114},
      {Kind::Interleaved, 4, 8, 116.8}, {Kind::Interleaved, 4, 16, 104.8},
      {Kind::ZbH1, 1, 0, 110},          {Kind::ZbV, 2, 0, 107.8},
      {Kind::DualPipeV, 2, 0, 109.5}};
  for (auto [kind, v, g, makespan] : rows) {
    ScheduleShape shape{kind, 8, v, 32, g};
    Timetable table =
        simulateSchedule(shape, equalStages(shape, 1, 1, 1), 0.25, false);
    EXPECT_LE(table.makespan, makespan + 0.06) << text(shape);
    EXPECT_GT(table.makespan, makespan - 5) << text(shape);
  }
}

} // namespace
