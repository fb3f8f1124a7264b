//===- ScheduleCsvTest.cpp - reading and writing schedule tables ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <gtest/gtest.h>

using namespace reckon;
using namespace reckon::model;

namespace {

using Kind = ScheduleKind;

TEST(ScheduleCsv, RoundTrip) {
  for (Kind kind : {Kind::GPipe, Kind::OneFOneB, Kind::Interleaved, Kind::Bfs,
                    Kind::ZbH1, Kind::ZbH2, Kind::ZbV, Kind::DualPipeV})
    for (int64_t p : {1, 2, 4})
      for (int64_t v : {1, 2, 3}) {
        ScheduleShape shape{kind, p, v, 9};
        if (!whyNotSchedule(shape).empty())
          continue;
        PipelineOrders orders = makeOrders(shape);
        std::string csv = scheduleCsv(orders);
        Result<PipelineOrders> read = readScheduleCsv(csv, "s.csv");
        ASSERT_TRUE(read.ok()) << read.error().message;
        EXPECT_EQ(read->p, p);
        EXPECT_EQ(read->v, v);
        EXPECT_EQ(read->m, 9);
        EXPECT_EQ(read->ranks, orders.ranks);
        EXPECT_EQ(read->rankOfStage, orders.rankOfStage);
        EXPECT_EQ(scheduleCsv(*read), csv);
      }
}

TEST(ScheduleCsv, OtherDialects) {
  // Overlapped pairs, communication cells, blanks, and a first stage whose W
  // is the whole backward.
  Result<PipelineOrders> read =
      readScheduleCsv("0UNSHARD, 0F0,0SEND_F0,0F1,,0RECV_B0,0W0,0W1\r\n"
                      ",1RECV_F0,1F0,(1F1;1B0)OVERLAP_F_B,1I1,1W1\r\n\n",
                      "s.csv");
  ASSERT_TRUE(read.ok()) << read.error().message;
  std::vector<ComputeAction> first{{'F', 0}, {'F', 1}, {'B', 0}, {'B', 1}};
  std::vector<ComputeAction> second{
      {'F', 0}, {'F', 1}, {'B', 0}, {'I', 1}, {'W', 1}};
  EXPECT_EQ(read->ranks[0], first);
  EXPECT_EQ(read->ranks[1], second);
}

TEST(ScheduleCsv, Refusals) {
  auto refusal = [](const std::string &text) {
    Result<PipelineOrders> read = readScheduleCsv(text, "s.csv");
    return read.ok() ? "accepted" : read.error().message;
  };
  EXPECT_EQ(refusal("0F0,0X0\n"),
            "s.csv:1:5: expected an action such as 0F3, 1B0, 2I1 or 2W1, got "
            "'0X0'; write the virtual stage, the pass and the micro-batch, or "
            "nothing");
  EXPECT_EQ(refusal("0F0,0B0,0F0\n"),
            "s.csv:1:9: expected every pass of a stage on a micro-batch once, "
            "got 0F0 again; delete it");
  EXPECT_EQ(refusal("0F0,0F1,0B0\n"),
            "s.csv:1:1: expected a forward and a backward of stage 0 on "
            "micro-batch 1, got no backward; add the missing action to this "
            "row");
  EXPECT_EQ(refusal("0F0,0B0\n0F1,0B1\n"),
            "s.csv:2:1: expected stage 0 only on rank 0, got it on rank 1 too; "
            "keep a stage on one rank");
  EXPECT_EQ(refusal("0F0,0B0\n2F0,2B0\n"),
            "s.csv:1:1: expected stages 0 to 1, got stage 2; number them "
            "without gaps");
  EXPECT_EQ(refusal("0F0,0B0,1F0,1B0\n2F0,2B0\n"),
            "s.csv:2:1: expected 2 stages as on rank 0, got 1 on rank 1; give "
            "every rank as many stages");
  EXPECT_EQ(refusal("0F0,0B0\n1F0,1W0\n"),
            "s.csv:2:5: expected the input gradient before 1W0, got none; put "
            "1I0 before it");
  EXPECT_EQ(refusal(""), "s.csv:1:1: expected one row a rank, got an empty "
                         "file; write actions such as 0F0,0B0");
  EXPECT_EQ(refusal("0F0,0B0\n1B0,1F0\n"),
            "s.csv: expected a schedule whose ranks all finish, got one whose "
            "ranks wait for each other: rank 0 at 0B0, rank 1 at 1B0; move "
            "these actions behind what they need");
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(ScheduleSvg, ABoxAnAction) {
  ScheduleShape shape{Kind::ZbV, 4, 2, 8};
  PipelineOrders orders = makeOrders(shape);
  std::vector<StageDurations> units(8);
  std::string svg = scheduleSvg(orders, *simulateOrders(orders, units));
  size_t actions = 0;
  for (const auto &rank : orders.ranks)
    actions += rank.size();
  EXPECT_EQ(count(svg, "<g>"), actions);
  EXPECT_EQ(count(svg, "<g>"), count(svg, "</g>"));
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
  EXPECT_NE(svg.find(">7F3: forward of stage 7, micro-batch 3, "),
            std::string::npos);
  EXPECT_EQ(svg.find("in this picture"), std::string::npos);
}

TEST(ScheduleSvg, LongStepsAreCut) {
  ScheduleShape shape{Kind::Interleaved, 4, 2, 4096};
  std::vector<StageDurations> units(8);
  std::string svg = scheduleSvg(shape, units);
  // (8 / 4 + 3) 4 = 20 micro-batches, 8 stages, 2 passes.
  EXPECT_EQ(count(svg, "<g>"), 320u);
  // 3 / (2 * 20) and 3 / (2 * 4096).
  EXPECT_NE(svg.find("idle / busiest work 7.50 % in this picture of 20 of 4096 "
                     "micro-batches; in the whole step 0.04 %"),
            std::string::npos)
      << svg.substr(svg.size() - 300);
}

} // namespace
