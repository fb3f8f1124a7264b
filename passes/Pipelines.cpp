//===- Pipelines.cpp - the named phases of the compiler -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/Pipelines.h"

#include "dialect/Dist/Dist.h"
#include "dialect/Pipe/Pipe.h"
#include "dialect/Plan/Plan.h"
#include "dialect/Train/Train.h"
#include "passes/dist/Passes.h"
#include "passes/pipe/Passes.h"
#include "passes/plan/Passes.h"
#include "passes/train/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace reckon {
namespace {

constexpr const char *phaseNames[] = {"train", "sharded", "partitioned",
                                      "scheduled", "planned"};

void buildTrainPhase(OpPassManager &pm, const std::string &recompute) {
  OpPassManager &program = pm.nest<train::ProgramOp>();
  program.addPass(train::createBuildBackward());
  // Recompute edits the backward, so it must exist; the optimizer does not
  // depend on either.
  program.addPass(train::createApplyRecompute({recompute}));
  program.addPass(train::createInsertOptimizer());
  program.addPass(train::createVerifyTrain());
}

void buildShardedPhase(OpPassManager &pm) {
  OpPassManager &program = pm.nest<train::ProgramOp>();
  program.addPass(dist::createApplySpec());
  program.addPass(dist::createPropagate());
  program.addPass(dist::createVerifySharded());
}

void buildPartitionedPhase(OpPassManager &pm, bool elide) {
  OpPassManager &program = pm.nest<train::ProgramOp>();
  program.addPass(dist::createPartition());
  // Collectives verify their local shapes, so shapes are local first.
  program.addPass(dist::createReshardToCollectives());
  if (elide)
    program.addPass(dist::createFuseCollectives());
  // Equal transfers are one by now, so that readers of one value share codes.
  program.addPass(dist::createQuantize());
  program.addPass(dist::createBucketCollectives());
  program.addPass(dist::createVerifyPartitioned());
}

void buildStages(OpPassManager &pm) {
  pm.addPass(pipe::createAssignStages());
  pm.addPass(pipe::createOutlineStages());
}

void buildSchedule(OpPassManager &pm) {
  pm.addPass(pipe::createSchedulePipeline());
  pm.addPass(pipe::createVerifySchedule());
}

void buildPlannedPhase(OpPassManager &pm, bool elide) {
  pm.addPass(planir::createMaterialize());
  OpPassManager &program = pm.nest<planir::ProgramOp>();
  program.addPass(planir::createAssignStreams());
  // Hazards are found by bytes, so buffers have their place before events.
  program.addPass(planir::createAllocateBuffers());
  program.addPass(planir::createInsertEvents());
  if (elide)
    program.addPass(planir::createElideEvents());
  program.addPass(planir::createVerifyPlan());
}

struct TrainPhaseOptions : PassPipelineOptions<TrainPhaseOptions> {
  Option<std::string> recompute{*this, "recompute",
                                llvm::cl::desc("none or full"),
                                llvm::cl::init("none")};
};

} // namespace

void registerReckonDialects(DialectRegistry &registry) {
  registry.insert<train::TrainDialect, dist::DistDialect, pipe::PipeDialect,
                  planir::PlanDialect>();
}

void registerReckonPasses() {
  train::registerTrainPasses();
  dist::registerDistPasses();
  pipe::registerPipePasses();
  planir::registerPlanPasses();
  PassPipelineRegistration<TrainPhaseOptions>(
      "reckon-train", "backward, recompute, optimizer",
      [](OpPassManager &pm, const TrainPhaseOptions &options) {
        buildTrainPhase(pm, options.recompute);
      });
  PassPipelineRegistration<>("reckon-sharded", "mesh and shardings",
                             buildShardedPhase);
  PassPipelineRegistration<>(
      "reckon-partitioned", "local shapes and collectives",
      [](OpPassManager &pm) { buildPartitionedPhase(pm, true); });
  PassPipelineRegistration<>("reckon-scheduled", "stages and action lists",
                             [](OpPassManager &pm) {
                               buildStages(pm);
                               buildSchedule(pm);
                             });
  PassPipelineRegistration<>(
      "reckon-planned", "buffers, streams, events",
      [](OpPassManager &pm) { buildPlannedPhase(pm, true); });
}

const char *phaseName(Phase phase) {
  return phaseNames[static_cast<int>(phase)];
}

std::optional<Phase> parsePhase(std::string_view name) {
  for (int i = 0; i < 5; ++i)
    if (name == phaseNames[i])
      return static_cast<Phase>(i);
  return std::nullopt;
}

LogicalResult runPhases(ModuleOp module, const PhaseOptions &options) {
  struct Step {
    const char *snapshot;
    Phase phase;
    std::function<void(OpPassManager &)> build;
  };
  const Step steps[] = {
      {"10-train.mlir", Phase::Train, [](OpPassManager &) {}},
      {"20-train-backward.mlir", Phase::Train,
       [&](OpPassManager &pm) { buildTrainPhase(pm, options.recompute); }},
      {"30-sharded.mlir", Phase::Sharded, buildShardedPhase},
      {"40-partitioned.mlir", Phase::Partitioned,
       [&](OpPassManager &pm) { buildPartitionedPhase(pm, options.elide); }},
      {"60-stages.mlir", Phase::Scheduled, buildStages},
      {"70-schedule.mlir", Phase::Scheduled, buildSchedule},
      {"80-plan.mlir", Phase::Planned,
       [&](OpPassManager &pm) { buildPlannedPhase(pm, options.elide); }},
  };
  bool skipping = !options.after.empty();
  for (const Step &step : steps) {
    if (skipping) {
      skipping = options.after != step.snapshot;
      continue;
    }
    if (step.phase > options.last)
      break;
    PassManager pm(module.getContext());
    step.build(pm);
    if (failed(pm.run(module)))
      return failure();
    if (options.snapshot)
      options.snapshot(step.snapshot, module);
  }
  if (skipping)
    return module.emitError()
           << "'" << options.after << "' is not the name of a snapshot";
  return success();
}

} // namespace reckon
