//===- ScheduleCheckerTest.cpp - the judge believes nothing ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Checker.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

using Kind = ScheduleKind;

struct Case {
  ScheduleClaim claim;
  ClaimTerms terms;
};

Case named(const ScheduleShape &shape, double transfer = 0) {
  PipelineOrders orders = makeOrders(shape);
  std::vector<StageDurations> durations(shape.stages());
  for (int64_t s = 0; s < shape.stages(); ++s)
    durations[s] = {1 + 0.25 * static_cast<double>(s % 2), 2.5, 1};
  Result<Timetable> table = simulateOrders(orders, durations, transfer);
  Case made;
  made.claim = claimOf(orders, *table);
  made.terms.durations = durations;
  for (int64_t s = 0; s < shape.stages(); ++s)
    made.terms.rankOfStage.push_back(
        rankOfStage(shape.kind, shape.p, shape.v, s));
  made.terms.transfer = transfer;
  for (int64_t rank = 0; rank < shape.p; ++rank)
    made.terms.slots.push_back(inFlight(shape, rank).peak);
  made.terms.horizon = table->makespan;
  return made;
}

TEST(ScheduleChecker, AcceptsEveryNamedSchedule) {
  for (Kind kind : {Kind::GPipe, Kind::OneFOneB, Kind::Interleaved, Kind::Bfs,
                    Kind::ZbH1, Kind::ZbH2, Kind::ZbV, Kind::DualPipeV})
    for (int64_t p : {1, 2, 4})
      for (int64_t v : {1, 2})
        for (double transfer : {0.0, 0.5}) {
          ScheduleShape shape{kind, p, v, 9};
          if (!whyNotSchedule(shape).empty())
            continue;
          Case made = named(shape, transfer);
          Status status = checkClaim(made.claim, made.terms);
          EXPECT_TRUE(status.ok()) << status.error().message;
        }
}

/// What the judge says of ZB-H1, p = 2, m = 3, after `change`.
std::string verdict(void (*change)(Case &)) {
  Case made = named({Kind::ZbH1, 2, 1, 3}, 0.5);
  change(made);
  Status status = checkClaim(made.claim, made.terms);
  return status.ok() ? "accepted" : status.error().message;
}

ClaimedAction &find(Case &made, int64_t stage, char pass, int64_t microBatch) {
  for (ClaimedAction &action : made.claim.actions)
    if (action.stage == stage && action.pass == pass &&
        action.microBatch == microBatch)
      return action;
  throw std::runtime_error("no such action");
}

TEST(ScheduleChecker, RefusesEachKindOfFault) {
  const std::string tail = "; this schedule must not be used";
  EXPECT_EQ(verdict([](Case &) {}), "accepted");
  EXPECT_EQ(verdict([](Case &c) { find(c, 1, 'F', 2).microBatch = 1; }),
            "expected 1F1 once, got it twice" + tail);
  EXPECT_EQ(verdict([](Case &c) { find(c, 1, 'F', 2).microBatch = 3; }),
            "expected a pass of 2 stages on 3 micro-batches, got 1F3" + tail);
  EXPECT_EQ(verdict([](Case &c) { c.claim.actions.pop_back(); }),
            "expected F and either B or I and W of stage 1 on micro-batch 2, "
            "got not these" +
                tail);
  EXPECT_EQ(verdict([](Case &c) { find(c, 1, 'F', 0).rank = 0; }),
            "expected 1F0 on rank 1, got rank 0" + tail);
  EXPECT_EQ(verdict([](Case &c) { find(c, 1, 'F', 0).end += 1; }),
            "expected 1F0 to take 1.25, got 2.25" + tail);
  // 0F0 ends at 1 and needs 0.5 to arrive.
  EXPECT_EQ(verdict([](Case &c) {
              find(c, 1, 'F', 0).start -= 0.25;
              find(c, 1, 'F', 0).end -= 0.25;
            }),
            "expected 1F0 at 1.5 or later, when 0F0 is there, got 1.25" + tail);
  // Slower forwards of micro-batch 1 reach into 1I0, at 2.75 to 4.25.
  EXPECT_NE(verdict([](Case &c) {
              find(c, 1, 'F', 1).start = 3;
              find(c, 1, 'F', 1).end = 4.25;
            }).find("one action at a time on rank 1"),
            std::string::npos);
  EXPECT_NE(verdict([](Case &c) {
              c.terms.slots[0] = 1;
            }).find("at most 1 stashes on rank 0, got 2 in 0F1"),
            std::string::npos);
  EXPECT_NE(
      verdict([](Case &c) { *c.terms.horizon -= 0.25; }).find("to end by"),
      std::string::npos);
  EXPECT_NE(
      verdict([](Case &c) { c.terms.span = 8; }).find("to span at most 8"),
      std::string::npos);
}

} // namespace
