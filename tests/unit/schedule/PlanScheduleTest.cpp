//===- PlanScheduleTest.cpp - the schedule of a choice --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/PlanSchedule.h"
#include "passes/search/Search.h"

#include "Replay.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::search;

namespace {

model::Choice pipeline(ScheduleKind kind, int64_t p, int64_t v, int64_t m) {
  model::Choice choice;
  choice.pp = p;
  choice.v = v;
  choice.numMicroBatches = m;
  choice.schedule = kind;
  return choice;
}

TEST(PlanSchedule, NamedIsCertifiedForItsOwnSlots) {
  PlannedSchedule planned =
      planSchedule(pipeline(ScheduleKind::Interleaved, 4, 2, 64), {}, 0.1);
  EXPECT_TRUE(planned.certificate.proved);
  // 2 (3 - r) + 4 + 1
  EXPECT_EQ(planned.certificate.slots, (std::vector<int64_t>{11, 9, 7, 5}));
  Proved proved = provedSchedule(planned);
  EXPECT_EQ(proved.what, "schedule");
  EXPECT_TRUE(proved.optimal);
  EXPECT_TRUE(scheduleJson(planned)["proved"]);
}

TEST(PlanSchedule, SynthesizedRunsInAsManySlotsAsRanks) {
  std::vector<StageDurations> durations(4); // 24 units of work, 3 to start
  PlannedSchedule planned = planSchedule(
      pipeline(ScheduleKind::Synthesized, 4, 1, 8), durations, 0.2);
  ASSERT_TRUE(planned.synthesis);
  EXPECT_EQ(planned.synthesis->value, 27);
  EXPECT_TRUE(planned.certificate.proved) << planned.certificate.reason;
  EXPECT_DOUBLE_EQ(planned.certificate.bubble, 3.0 / 24);
  // max_bubble 0.1 would need 26.4 units.
  planned = planSchedule(pipeline(ScheduleKind::Synthesized, 4, 1, 8),
                         durations, 0.1);
  EXPECT_FALSE(planned.certificate.proved);
}

TEST(PlanSchedule, FilesAreReadAndCompared) {
  auto folder = std::filesystem::temp_directory_path() /
                ("reckon-plan-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::string file = folder / "s.csv";
  std::ofstream(file) << scheduleCsv({ScheduleKind::ZbV, 2, 2, 6});
  PlannedSchedule planned =
      planSchedule(pipeline(ScheduleKind::Csv, 2, 2, 6), {}, 0.2, "", file);
  EXPECT_TRUE(planned.certificate.proved) << planned.certificate.reason;
  // (p-1) / (3 m v)
  EXPECT_DOUBLE_EQ(planned.certificate.bubble, 1.0 / 36);
  EXPECT_EQ(
      planSchedule(pipeline(ScheduleKind::Csv, 2, 2, 8), {}, 0.2, "", file)
          .certificate.reason,
      file + ": expected a schedule of 2 ranks, 2 chunks a rank and 8 "
             "micro-batches, got 2 ranks, 2 chunks a rank and 6 "
             "micro-batches; change pipeline_parallel, virtual_pipeline "
             "or the batch");
  ASSERT_TRUE(dumpScheduleSmt(planned, folder / "smt").ok());
  std::ifstream dumped(folder / "smt" / "schedule.smt2");
  std::string text((std::istreambuf_iterator<char>(dumped)), {});
  std::string answer = replay(text);
  if (!answer.empty()) {
    EXPECT_EQ(answer, "sat\n");
  }
  std::filesystem::remove_all(folder);
}

} // namespace
