//===- VerifySchedule.cpp - the lists of all stages against each other ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/pipe/ActionOps.h"
#include "passes/pipe/Passes.h"

#include <map>
#include <set>

using namespace mlir;

namespace reckon::pipe {
#define GEN_PASS_DEF_VERIFYSCHEDULE
#include "passes/pipe/Passes.h.inc"

namespace {

using model::ActionKind;
using model::SlotClassId;

/// Micro-batches in list order that a stage sends into, or takes from, each
/// channel.
using Messages = std::map<int64_t, std::vector<int64_t>>;

Messages messagesOf(const model::StageActions &list, ActionKind kind) {
  Messages messages;
  for (const model::StageAction &action : list.actions)
    if (action.kind == kind)
      messages[action.channel].push_back(action.microBatch);
  return messages;
}

struct VerifySchedule : impl::VerifyScheduleBase<VerifySchedule> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(check(program)))
        return signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult check(ProgramOp program);
  LogicalResult checkChannels(ArrayRef<StageOp> stages,
                              ArrayRef<model::StageActions> lists);
  LogicalResult checkInFlight(StageOp stage, const model::StageActions &list,
                              model::ScheduleKind schedule, size_t stages);
  LogicalResult checkSlots(StageOp stage, const model::StageActions &list);
};

} // namespace

/// Both sides of a channel see the same micro-batches in the same order.
LogicalResult
VerifySchedule::checkChannels(ArrayRef<StageOp> stages,
                              ArrayRef<model::StageActions> lists) {
  Messages sent, received;
  for (const model::StageActions &list : lists) {
    sent.merge(messagesOf(list, ActionKind::Send));
    received.merge(messagesOf(list, ActionKind::Recv));
  }
  for (int64_t lower = 0; lower + 1 < int64_t(stages.size()); ++lower)
    for (Direction direction : {Direction::Forward, Direction::Backward}) {
      int64_t channel = channelOf(lower, direction);
      const auto &out = sent[channel], &in = received[channel];
      bool up = direction == Direction::Forward;
      StageOp source = stages[up ? lower : lower + 1];
      StageOp target = stages[up ? lower + 1 : lower];
      if (out.size() != in.size())
        return target.findActions().emitOpError("receives ")
               << in.size() << " messages on channel " << channel
               << ", expected the " << out.size() << " that stage "
               << source.getIndex() << " sends";
      for (size_t i = 0; i < out.size(); ++i)
        if (out[i] != in[i])
          return target.findActions().emitOpError("expects micro-batch ")
                 << in[i] << " as message " << i << " on channel " << channel
                 << ", but stage " << source.getIndex() << " sends micro-batch "
                 << out[i] << "; both sides must use one order";
    }
  return success();
}

/// Micro-batches between forward and backward stay within what the schedule
/// promises, which is what the planner counts.
LogicalResult VerifySchedule::checkInFlight(StageOp stage,
                                            const model::StageActions &list,
                                            model::ScheduleKind schedule,
                                            size_t stages) {
  int64_t microBatches = stage.getProgram().getNumMicroBatches();
  int64_t bound = microBatches;
  if (schedule == model::ScheduleKind::OneFOneB)
    bound = std::min<int64_t>(bound, stages - stage.getIndex());
  int64_t inFlight = 0, peak = 0;
  for (const model::StageAction &action : list.actions)
    if (action.kind == ActionKind::Run)
      peak = std::max(peak, inFlight += action.pass == 'F' ? 1 : -1);
  if (peak <= bound)
    return success();
  return stage.findActions().emitOpError("has ")
         << peak << " micro-batches in flight, expected at most " << bound
         << " in stage " << stage.getIndex() << " of " << stages << " under "
         << model::scheduleName(schedule);
}

/// Slots are numbered without gaps. What is held at once needs them all, but
/// for the second output and grad_out, which is filled while the first is
/// still being sent.
LogicalResult VerifySchedule::checkSlots(StageOp stage,
                                         const model::StageActions &list) {
  std::array<int64_t, model::kNumSlotClasses> held{}, peak{};
  std::array<std::set<int64_t>, model::kNumSlotClasses> indices;
  for (const model::StageAction &action : list.actions)
    for (const model::SlotUse &use : action.uses) {
      auto id = size_t(use.cls);
      indices[id].insert(use.index);
      if (use.acquire)
        peak[id] = std::max(peak[id], ++held[id]);
      if (use.release)
        --held[id];
    }
  int64_t microBatches = stage.getProgram().getNumMicroBatches();
  for (size_t id = 0; id < model::kNumSlotClasses; ++id) {
    bool sent = SlotClassId(id) == SlotClassId::Output ||
                SlotClassId(id) == SlotClassId::GradOut;
    int64_t expected =
        sent && peak[id] > 0 ? std::min<int64_t>(2, microBatches) : peak[id];
    if (list.counts[id] != expected || int64_t(indices[id].size()) != expected)
      return stage.findActions().emitOpError("uses ")
             << indices[id].size() << " slots of class "
             << stringifySlotClass(SlotClass(id)) << " numbered below "
             << list.counts[id] << ", expected " << expected;
  }
  return success();
}

LogicalResult VerifySchedule::check(ProgramOp program) {
  auto stages = llvm::to_vector(program.getStages());
  if (!stages.front().findActions())
    return program.emitOpError("has no action lists; run pipe-schedule first");
  auto schedule = model::parseSchedule(*program.getSchedule());
  if (!schedule)
    return program.emitOpError("expected the schedule gpipe or 1f1b, got '")
           << *program.getSchedule() << "'";

  std::vector<model::StageActions> lists;
  for (StageOp stage : stages)
    lists.push_back(readActions(stage));
  if (failed(checkChannels(stages, lists)))
    return failure();
  for (auto [stage, list] : llvm::zip(stages, lists))
    if (failed(checkInFlight(stage, list, *schedule, stages.size())) ||
        failed(checkSlots(stage, list)))
      return failure();
  if (Status status = model::checkDeadlockFree(lists); !status)
    return program.emitOpError() << status.error().message;
  return success();
}

} // namespace reckon::pipe
