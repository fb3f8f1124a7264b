//===- SchedulePipeline.cpp - the action lists of all stages --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/pipe/ActionOps.h"
#include "passes/pipe/Passes.h"

using namespace mlir;

namespace reckon::pipe {
#define GEN_PASS_DEF_SCHEDULEPIPELINE
#include "passes/pipe/Passes.h.inc"

namespace {

struct SchedulePipeline : impl::SchedulePipelineBase<SchedulePipeline> {
  using SchedulePipelineBase::SchedulePipelineBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(schedule(program)))
        return signalPassFailure();
  }

  LogicalResult schedule(ProgramOp program);
};

} // namespace

LogicalResult SchedulePipeline::schedule(ProgramOp program) {
  std::string name = kind;
  if (name.empty())
    name = program.getSchedule().value_or("").str();
  auto schedule = model::parseSchedule(name);
  if (!schedule)
    return program.emitOpError("expected a schedule, gpipe or 1f1b, got '")
           << name << "'; set the pass option kind or the program's schedule";
  program.setSchedule(name);

  auto stages = llvm::to_vector(program.getStages());
  for (StageOp stage : stages) {
    if (ActionsOp old = stage.findActions())
      old.erase();
    FragmentOp forward = stage.findFragment(FragmentKind::Forward);
    bool hasStash =
        llvm::is_contained(forward.getSlotClasses(), SlotClass::Stash);
    createActions(stage, model::buildStageActions(*schedule, stages.size(),
                                                  program.getNumMicroBatches(),
                                                  stage.getIndex(), hasStash));
  }
  return success();
}

} // namespace reckon::pipe
