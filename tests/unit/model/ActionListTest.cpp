//===- ActionListTest.cpp - slots, messages and the deadlock check --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/ActionList.h"

#include <gtest/gtest.h>

#include <map>

using namespace reckon;
using namespace reckon::model;

namespace {

constexpr ScheduleKind kKinds[] = {ScheduleKind::GPipe, ScheduleKind::OneFOneB};

std::vector<StageActions> allStages(ScheduleKind kind, int64_t p, int64_t m) {
  std::vector<StageActions> stages;
  for (int64_t s = 0; s < p; ++s)
    stages.push_back(buildStageActions(kind, p, m, s));
  return stages;
}

/// `0F0:tokens0,stash0+,output0+`: + acquires, - releases.
std::string text(const StageActions &stage) {
  std::string lines;
  for (const StageAction &action : stage.actions) {
    lines += action.label;
    for (const SlotUse &use : action.uses)
      lines += std::string(" ") + slotClassName(use.cls) +
               std::to_string(use.index) + (use.acquire ? "+" : "") +
               (use.release ? "-" : "");
    lines += "\n";
  }
  return lines;
}

TEST(ActionList, FirstStageByHand) {
  EXPECT_EQ(text(buildStageActions(ScheduleKind::OneFOneB, 2, 3, 0)),
            "begin\n"
            "0LOAD0 tokens0+\n"
            "0LOAD1 tokens1+\n" // prefetch for F1
            "0F0 tokens0 stash0+ output0+\n"
            "0SEND_F0 output0-\n"
            "0RECV_B0 grad_in0+\n" // F1's own load is done; prefetch for B0
            "0F1 tokens1 stash1+ output1+\n"
            "0SEND_F1 output1-\n"
            "0LOAD2 tokens2+\n"
            "0B0 tokens0- stash0- grad_in0-\n"
            "0RECV_B1 grad_in1+\n"
            "0F2 tokens2 stash0+ output0+\n"
            "0SEND_F2 output0-\n"
            "0RECV_B2 grad_in0+\n"
            "0B1 tokens1- stash1- grad_in1-\n"
            "0B2 tokens2- stash0- grad_in0-\n"
            "update\n");
}

TEST(ActionList, LastStageByHand) {
  EXPECT_EQ(text(buildStageActions(ScheduleKind::OneFOneB, 2, 2, 1)),
            "begin\n"
            "1RECV_F0 input0+\n"
            "1LOAD0 targets0+\n"
            "1F0 input0 stash0+\n"
            "1RECV_F1 input1+\n"
            "1B0 input0- stash0- targets0- grad_out0+\n"
            "1SEND_B0 grad_out0-\n"
            "1LOAD1 targets0+\n"
            "1F1 input1 stash0+\n"
            "1B1 input1- stash0- targets0- grad_out1+\n"
            "1SEND_B1 grad_out1-\n"
            "update\n");
}

TEST(ActionList, OneStageLoadsOnceAndSendsNothing) {
  StageActions stage = buildStageActions(ScheduleKind::GPipe, 1, 2, 0);
  EXPECT_EQ(text(stage), "begin\n"
                         "0LOAD0 tokens0+ targets0+\n"
                         "0LOAD1 tokens1+ targets1+\n"
                         "0F0 tokens0 stash0+\n"
                         "0F1 tokens1 stash1+\n"
                         "0B0 tokens0- stash0- targets0-\n"
                         "0B1 tokens1- stash1- targets1-\n"
                         "update\n");
  EXPECT_EQ(stage.count(SlotClassId::Output), 0);
  EXPECT_EQ(stage.count(SlotClassId::Input), 0);
}

TEST(ActionList, WithoutStashNothingElseChanges) {
  StageActions with = buildStageActions(ScheduleKind::OneFOneB, 3, 5, 1);
  StageActions without =
      buildStageActions(ScheduleKind::OneFOneB, 3, 5, 1, false);
  EXPECT_EQ(without.count(SlotClassId::Stash), 0);
  ASSERT_EQ(with.actions.size(), without.actions.size());
  for (size_t i = 0; i < with.actions.size(); ++i) {
    std::vector<SlotUse> uses = with.actions[i].uses;
    std::erase_if(uses,
                  [](SlotUse use) { return use.cls == SlotClassId::Stash; });
    EXPECT_EQ(uses, without.actions[i].uses);
  }
}

/// Walks a list and checks that a slot is taken when free and used while held
/// by the same micro-batch.
void checkSlots(const StageActions &stage) {
  std::map<std::pair<SlotClassId, int64_t>, int64_t> holder;
  std::array<int64_t, kNumSlotClasses> live{}, peak{};
  for (const StageAction &action : stage.actions)
    for (const SlotUse &use : action.uses) {
      auto key = std::pair(use.cls, use.index);
      auto cls = static_cast<size_t>(use.cls);
      ASSERT_LT(use.index, stage.counts[cls]) << action.label;
      if (use.acquire) {
        ASSERT_FALSE(holder.count(key)) << action.label;
        holder[key] = action.microBatch;
        peak[cls] = std::max(peak[cls], ++live[cls]);
      }
      ASSERT_EQ(holder.at(key), action.microBatch) << action.label;
      if (use.release) {
        holder.erase(key);
        --live[cls];
      }
    }
  EXPECT_TRUE(holder.empty());
  for (size_t cls = 0; cls < kNumSlotClasses; ++cls) {
    bool doubled = cls == static_cast<size_t>(SlotClassId::Output) ||
                   cls == static_cast<size_t>(SlotClassId::GradOut);
    if (!doubled) {
      EXPECT_EQ(peak[cls], stage.counts[cls]);
    }
  }
}

TEST(ActionList, PropertiesOfManySizes) {
  for (ScheduleKind kind : kKinds)
    for (int64_t p = 1; p <= 6; ++p)
      for (int64_t m = 1; m <= 10; ++m) {
        std::vector<StageActions> stages = allStages(kind, p, m);
        for (int64_t s = 0; s < p; ++s) {
          checkSlots(stages[s]);
          // The search counts slots without building lists.
          EXPECT_EQ(stages[s].counts, slotCounts(kind, p, m, s))
              << scheduleName(kind) << " p " << p << " m " << m << " s " << s;
          EXPECT_EQ(stages[s].count(SlotClassId::Stash),
                    peakInFlight(scheduleOrder(kind, p, m, s)));
        }
        Status status = checkDeadlockFree(stages);
        EXPECT_TRUE(status.ok()) << status.error().message;
      }
}

TEST(ActionList, ConsecutiveResultsAlternate) {
  StageActions stage = buildStageActions(ScheduleKind::GPipe, 2, 4, 0);
  std::vector<int64_t> indices;
  for (const StageAction &action : stage.actions)
    if (action.kind == ActionKind::Run)
      if (const SlotUse *use = action.find(SlotClassId::Output))
        indices.push_back(use->index);
  EXPECT_EQ(indices, (std::vector<int64_t>{0, 1, 0, 1}));
}

TEST(ActionList, ChannelsJoinNeighbours) {
  std::vector<StageActions> stages = allStages(ScheduleKind::OneFOneB, 3, 2);
  std::map<int64_t, std::vector<int64_t>> senders, receivers;
  for (const StageActions &stage : stages)
    for (const StageAction &action : stage.actions) {
      if (action.kind == ActionKind::Send)
        senders[action.channel].push_back(stage.stage);
      if (action.kind == ActionKind::Recv)
        receivers[action.channel].push_back(stage.stage);
    }
  // Forward 2s from s to s+1, backward 2s+1 from s+1 to s; two messages each.
  using Ends = std::map<int64_t, std::vector<int64_t>>;
  EXPECT_EQ(senders,
            (Ends{{0, {0, 0}}, {1, {1, 1}}, {2, {1, 1}}, {3, {2, 2}}}));
  EXPECT_EQ(receivers,
            (Ends{{0, {1, 1}}, {1, {0, 0}}, {2, {2, 2}}, {3, {1, 1}}}));
}

StageAction *find(StageActions &stage, const std::string &label) {
  for (StageAction &action : stage.actions)
    if (action.label == label)
      return &action;
  return nullptr;
}

TEST(DeadlockCheck, PrintsTheCycle) {
  std::vector<StageActions> stages = allStages(ScheduleKind::GPipe, 2, 2);
  // All messages of stage 0 on one stream: the prefetched 0RECV_B0 stands
  // before 0SEND_F1, but stage 1 needs F1 before it runs B0.
  for (StageAction &action : stages[0].actions)
    if (action.kind == ActionKind::Send || action.kind == ActionKind::Recv)
      action.stream = StreamSendForward;
  Status status = checkDeadlockFree(stages);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ExitCode::Internal);
  const std::string &message = status.error().message;
  EXPECT_NE(message.find("0SEND_F1 is issued after 0RECV_B0"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("1B0"), std::string::npos) << message;
}

TEST(DeadlockCheck, SlotsBlockUntilTheyAreFree) {
  // One receive slot where the schedule needs two at once.
  std::vector<StageActions> stages = allStages(ScheduleKind::GPipe, 2, 2);
  for (StageAction &action : stages[1].actions)
    for (SlotUse &use : action.uses)
      if (use.cls == SlotClassId::Input)
        use.index = 0;
  Status status = checkDeadlockFree(stages);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(
                "1RECV_F1 of stage 1 takes input slot 0, which is still held"),
            std::string::npos)
      << status.error().message;
}

TEST(DeadlockCheck, BothSidesOfAChannelAgree) {
  std::vector<StageActions> stages = allStages(ScheduleKind::OneFOneB, 2, 2);
  std::swap(find(stages[1], "1RECV_F0")->microBatch,
            find(stages[1], "1RECV_F1")->microBatch);
  Status status = checkDeadlockFree(stages);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("channel 0: message 0 is 0SEND_F0"),
            std::string::npos)
      << status.error().message;

  stages = allStages(ScheduleKind::OneFOneB, 2, 2);
  std::erase_if(stages[0].actions,
                [](auto &action) { return action.label == "0RECV_B1"; });
  for (StageAction &action : stages[0].actions)
    std::erase_if(action.uses,
                  [](SlotUse use) { return use.cls == SlotClassId::GradIn; });
  status = checkDeadlockFree(stages);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("sends but"), std::string::npos);
}

} // namespace
