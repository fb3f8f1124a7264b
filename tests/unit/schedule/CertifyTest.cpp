//===- CertifyTest.cpp - what Z3 says of named schedules ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Certify.h"

#include "Replay.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::search;

namespace {

using Kind = ScheduleKind;

/// The slots that the schedule itself takes, and exactly its bubble.
CertifyQuery tight(const ScheduleShape &shape) {
  CertifyQuery query;
  query.shape = shape;
  for (int64_t rank = 0; rank < shape.p; ++rank)
    query.slots.push_back(inFlight(shape, rank).peak);
  query.maxBubble = scheduleBubble(shape);
  return query;
}

TEST(Certify, EveryNamedScheduleWithinItsOwnSlotsAndBubble) {
  for (ScheduleShape shape : {ScheduleShape{Kind::GPipe, 4, 1, 16},
                              {Kind::OneFOneB, 1, 1, 4},
                              {Kind::OneFOneB, 4, 1, 3},
                              {Kind::OneFOneB, 4, 1, 16384},
                              {Kind::OneFOneB, 16, 1, 640},
                              {Kind::Interleaved, 4, 4, 16},
                              {Kind::Interleaved, 4, 2, 1024},
                              {Kind::Interleaved, 4, 2, 9},
                              {Kind::Bfs, 4, 2, 8},
                              {Kind::ZbH1, 4, 1, 8},
                              {Kind::ZbH1, 8, 1, 1000},
                              {Kind::ZbH2, 8, 1, 1000},
                              {Kind::ZbV, 4, 2, 8},
                              {Kind::ZbV, 4, 2, 1000},
                              {Kind::DualPipeV, 4, 2, 1000}}) {
    const Certificate &certificate = certify(tight(shape));
    EXPECT_TRUE(certificate.proved)
        << scheduleName(shape.kind) << " " << certificate.reason;
    EXPECT_NEAR(certificate.bubble, scheduleBubble(shape), 1e-9);
    EXPECT_EQ(certificate.method, certificate.blockMicroBatches
                                      ? "repeating block"
                                      : "all micro-batches");
    if (shape.m >= 640) {
      EXPECT_EQ(certificate.method, "repeating block");
      EXPECT_LT(certificate.instance, 100);
    }
  }
}

// Steps of more actions than the solver is given, 262,000 to 4 million: of
// orders that repeat nothing another one in the same slots is certified, and
// what is too long even then the checker judges.
TEST(Certify, LongStepsOfEverySchedule) {
  struct {
    ScheduleShape shape;
    const char *method;
  } all[] = {{{Kind::GPipe, 64, 1, 2048}, "repeating block of 1f1b"},
             {{Kind::Bfs, 16, 4, 2048}, "repeating block of interleaved_1f1b"},
             {{Kind::OneFOneB, 64, 1, 4096}, "repeating block"},
             {{Kind::Interleaved, 16, 8, 512}, "repeating block"},
             {{Kind::Interleaved, 64, 4, 1024}, "repeating block"},
             {{Kind::Interleaved, 128, 8, 2048}, "repeating block, checker"}};
  for (const auto &[shape, method] : all) {
    const Certificate &certificate = certify(tight(shape));
    EXPECT_TRUE(certificate.proved)
        << scheduleName(shape.kind) << " " << certificate.reason;
    EXPECT_EQ(certificate.method, method);
    EXPECT_NEAR(certificate.bubble, scheduleBubble(shape), 1e-9);
  }
  CertifyQuery query = tight({Kind::Interleaved, 128, 8, 2048});
  --query.slots[7];
  EXPECT_FALSE(certify(query).proved);
  EXPECT_NE(certify(query).reason.find("stashes on rank 7"), std::string::npos)
      << certify(query).reason;
}

TEST(Certify, RefusesOneSlotLessAndOneTickLess) {
  for (ScheduleShape shape : {ScheduleShape{Kind::OneFOneB, 4, 1, 100},
                              {Kind::Interleaved, 4, 2, 64},
                              {Kind::ZbH1, 4, 1, 100},
                              {Kind::DualPipeV, 4, 2, 16}})
    for (int64_t rank = 0; rank < shape.p; ++rank) {
      CertifyQuery query = tight(shape);
      --query.slots[rank];
      query.maxBubble += 0.5;
      const Certificate &certificate = certify(query);
      EXPECT_FALSE(certificate.proved) << scheduleName(shape.kind) << rank;
      EXPECT_NE(certificate.reason.find("slots"), std::string::npos)
          << certificate.reason;
    }
  CertifyQuery query = tight({Kind::OneFOneB, 4, 1, 100});
  query.maxBubble -= 1e-4; // a third of a tick of 300
  EXPECT_FALSE(certify(query).proved);
  EXPECT_EQ(certify(query).reason, "the schedule's bubble is 3.0000 %, "
                                   "max_bubble allows 2.9900 %");
}

TEST(Certify, UnevenStagesAndMessages) {
  for (Kind kind : {Kind::OneFOneB, Kind::Interleaved, Kind::ZbH1})
    for (double transfer : {0.0, 0.0313}) {
      CertifyQuery query;
      query.shape = {kind, 4, kind == Kind::Interleaved ? 2 : 1, 256};
      for (int64_t s = 0; s < query.shape.stages(); ++s)
        query.durations.push_back({0.1 + 0.00713 * static_cast<double>(s % 3),
                                   0.21,
                                   0.1 - 0.00311 * static_cast<double>(s % 2)});
      query.durations.back().forward += 0.0531;
      query.transfer = transfer;
      for (int64_t rank = 0; rank < 4; ++rank)
        query.slots.push_back(inFlight(query.shape, rank).peak);
      query.maxBubble = 0.1;
      const Certificate &certificate = certify(query);
      EXPECT_TRUE(certificate.proved)
          << scheduleName(kind) << transfer << " " << certificate.reason;
      double exact =
          simulateSchedule(query.shape, query.durations, transfer, false)
              .makespan;
      EXPECT_NEAR(certificate.makespan, exact, 1e-4 * exact);
      EXPECT_GE(certificate.makespan, exact - 1e-9); // rounded up
    }
}

TEST(Certify, SameAnswerAndStepsEveryTime) {
  CertifyQuery query = tight({Kind::Interleaved, 4, 2, 64});
  Certificate first = certify(query);
  query.budget += 1; // past the memory of answers
  Certificate second = certify(query);
  EXPECT_EQ(first.steps, second.steps);
  EXPECT_EQ(first.clauses, second.clauses);
  EXPECT_GT(first.steps, 0u);
  query.budget = 10;
  EXPECT_EQ(certify(query).reason, "the solver's budget is used up");
}

TEST(Certify, SmtLibReplays) {
  CertifyQuery query = tight({Kind::ZbH1, 4, 1, 100});
  std::string text = certifySmtLib(query);
  EXPECT_NE(text.find("(declare-fun |0F0@0| () Bool)"), std::string::npos);
  if (replay(text).empty())
    GTEST_SKIP() << "no z3 program";
  EXPECT_EQ(replay(text), "sat\n");
  --query.slots[3];
  EXPECT_FALSE(certify(query).proved);
  EXPECT_EQ(replay(certifySmtLib(query)), "unsat\n");
}

TEST(Certify, Sentence) {
  EXPECT_EQ(describe(certify(tight({Kind::OneFOneB, 4, 1, 100}))).substr(0, 89),
            "Z3 certifies a schedule with at most 4 stashes a rank, bubble "
            "3.00 % of at most 3.00 % (r");
}

} // namespace
