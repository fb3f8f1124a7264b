//===- ScheduleTest.cpp - orders, timetables and their pictures -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <gtest/gtest.h>

#include <set>

using namespace reckon;
using namespace reckon::model;

namespace {

constexpr ScheduleKind kKinds[] = {ScheduleKind::GPipe, ScheduleKind::OneFOneB};

std::string text(const std::vector<ComputeAction> &order) {
  std::string line;
  for (const ComputeAction &action : order) {
    if (!line.empty())
      line += ' ';
    line += action.pass;
    line += std::to_string(action.microBatch);
  }
  return line;
}

TEST(Schedule, NamesAreThoseOfTheSpec) {
  for (ScheduleKind kind : kKinds)
    EXPECT_EQ(parseSchedule(scheduleName(kind)), kind);
  EXPECT_EQ(parseSchedule("1f1b"), ScheduleKind::OneFOneB);
  EXPECT_EQ(parseSchedule("csv"), std::nullopt);
}

TEST(Schedule, OrdersByHand) {
  EXPECT_EQ(text(scheduleOrder(ScheduleKind::GPipe, 2, 3, 0)),
            "F0 F1 F2 B0 B1 B2");
  // p = 3, stage 0: p-1-s = 2 warm-up forwards.
  EXPECT_EQ(text(scheduleOrder(ScheduleKind::OneFOneB, 3, 4, 0)),
            "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(text(scheduleOrder(ScheduleKind::OneFOneB, 3, 4, 2)),
            "F0 B0 F1 B1 F2 B2 F3 B3");
  // Fewer micro-batches than warm-up forwards.
  EXPECT_EQ(text(scheduleOrder(ScheduleKind::OneFOneB, 4, 2, 0)),
            "F0 F1 B0 B1");
}

TEST(Schedule, EveryActionOnceAndForwardFirst) {
  for (ScheduleKind kind : kKinds)
    for (int64_t p = 1; p <= 6; ++p)
      for (int64_t m = 1; m <= 9; ++m)
        for (int64_t s = 0; s < p; ++s) {
          std::set<std::pair<char, int64_t>> seen;
          for (ComputeAction a : scheduleOrder(kind, p, m, s)) {
            EXPECT_TRUE(seen.insert({a.pass, a.microBatch}).second);
            if (a.pass == 'B') {
              EXPECT_TRUE(seen.count({'F', a.microBatch}));
            }
          }
          EXPECT_EQ(seen.size(), static_cast<size_t>(2 * m));
        }
}

TEST(Schedule, InFlight) {
  for (int64_t p = 1; p <= 8; ++p)
    for (int64_t m = 1; m <= 12; ++m)
      for (int64_t s = 0; s < p; ++s) {
        // 1F1B: p-1-s warm-up forwards and one more before the first backward.
        EXPECT_EQ(peakInFlight(scheduleOrder(ScheduleKind::OneFOneB, p, m, s)),
                  std::min(m, p - s));
        EXPECT_EQ(peakInFlight(scheduleOrder(ScheduleKind::GPipe, p, m, s)), m);
      }
}

TEST(Schedule, BubbleOfEqualStages) {
  for (ScheduleKind kind : kKinds)
    for (int64_t p = 1; p <= 8; ++p)
      for (int64_t m = 1; m <= 12; ++m) {
        std::vector<StageDurations> durations(p); // F 1, B 2
        Timetable table = simulateSchedule(kind, m, durations);
        // Ideal 3m; filling and draining cost (p-1)(F+B) = 3(p-1).
        EXPECT_DOUBLE_EQ(table.makespan, 3.0 * (m + p - 1));
        EXPECT_DOUBLE_EQ(table.bubbleFraction, double(p - 1) / double(m));
        EXPECT_DOUBLE_EQ(scheduleBubble(kind, p, m), table.bubbleFraction);
      }
}

TEST(Schedule, TransfersDelayTheFillAndDrain) {
  std::vector<StageDurations> durations(2);
  // One micro-batch: F0 [0,1], message, F [1.5,2.5], B [2.5,4.5], message,
  // B0 [5,7].
  Timetable table = simulateSchedule(ScheduleKind::OneFOneB, 1, durations, 0.5);
  EXPECT_DOUBLE_EQ(table.makespan, 7);
  EXPECT_DOUBLE_EQ(table.ranks[0][1].start, 5);
}

TEST(Schedule, SlowestStageSetsThePace) {
  std::vector<StageDurations> durations{{1, 2}, {2, 4}};
  // Stage 1 works 8 * 6 = 48 after F of stage 0, before B of stage 0.
  Timetable table = simulateSchedule(ScheduleKind::OneFOneB, 8, durations);
  EXPECT_DOUBLE_EQ(table.makespan, 1 + 48 + 2);
  EXPECT_DOUBLE_EQ(table.busy[1], 48);
  EXPECT_DOUBLE_EQ(table.bubbleFraction, 3.0 / 48);
}

TEST(Schedule, MakespanOfManyMicroBatches) {
  std::vector<StageDurations> durations{{1, 2}, {1.5, 2}, {1, 2.25}, {0.5, 4}};
  for (ScheduleKind kind : kKinds)
    for (double transfer : {0.0, 0.25, 1.0})
      for (int64_t m : {3, 47, 192, 401, 480}) {
        double exact = simulateSchedule(kind, m, durations, transfer).makespan;
        // Whole periods agree to the last bits, others nearly.
        double tolerance = m % 48 == 0 || m < 48 ? 1e-9 : 2e-3;
        EXPECT_NEAR(scheduleMakespan(kind, m, durations, transfer), exact,
                    tolerance * exact)
            << scheduleName(kind) << " " << transfer << " " << m;
      }
}

TEST(Schedule, Csv) {
  // F takes one column, B two; empty cells are idle or the rest of a B.
  EXPECT_EQ(scheduleCsv(ScheduleKind::OneFOneB, 2, 2),
            "0F0,0F1,,,0B0,,,0B1,\n"
            ",1F0,1B0,,1F1,1B1,,,\n");
  EXPECT_EQ(scheduleCsv(ScheduleKind::GPipe, 2, 2), "0F0,0F1,,,,0B0,,0B1,\n"
                                                    ",1F0,1F1,1B0,,1B1,,,\n");
}

TEST(Schedule, Picture) {
  EXPECT_EQ(schedulePicture(ScheduleKind::OneFOneB, 2, 2),
            "stage 0 |F0 F1 .  .  B0--- .  B1--- |\n"
            "stage 1 |.  F0 B0--- F1 B1--- .  .  |\n");
}

TEST(Schedule, PictureIsCutToItsWidth) {
  std::string picture = schedulePicture(ScheduleKind::GPipe, 4, 64, 80);
  size_t begin = 0, end;
  while ((end = picture.find('\n', begin)) != std::string::npos) {
    EXPECT_LE(end - begin, 80u);
    begin = end + 1;
  }
  // 3 (64 + 3) = 201 units.
  EXPECT_NE(picture.find("of 201 time units"), std::string::npos);
}

TEST(Schedule, PictureOfAMillionMicroBatches) {
  // Neither time nor memory may grow with what is cut off.
  std::string many = schedulePicture(ScheduleKind::GPipe, 2, 1000000, 60);
  EXPECT_NE(many.find("stage 0 |F0      F1"), std::string::npos) << many;
  EXPECT_NE(many.find("of 3000003 time units"), std::string::npos) << many;
}

} // namespace
