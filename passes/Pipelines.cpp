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

void buildPartitionedPhase(OpPassManager &pm) {
  OpPassManager &program = pm.nest<train::ProgramOp>();
  program.addPass(dist::createPartition());
  // Collectives verify their local shapes, so shapes are local first.
  program.addPass(dist::createReshardToCollectives());
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
  PassPipelineRegistration<>("reckon-partitioned",
                             "local shapes and collectives",
                             buildPartitionedPhase);
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
  auto run = [&](const char *name, auto build) -> LogicalResult {
    PassManager pm(module.getContext());
    build(pm);
    if (failed(pm.run(module)))
      return failure();
    if (options.snapshot)
      options.snapshot(name, module);
    return success();
  };
  auto nothing = [](OpPassManager &) {};
  if (failed(run("10-train.mlir", nothing)) ||
      failed(run("20-train-backward.mlir", [&](OpPassManager &pm) {
        buildTrainPhase(pm, options.recompute);
      })))
    return failure();
  if (options.last == Phase::Train)
    return success();
  if (failed(run("30-sharded.mlir", buildShardedPhase)))
    return failure();
  if (options.last == Phase::Sharded)
    return success();
  if (failed(run("40-partitioned.mlir", buildPartitionedPhase)))
    return failure();
  if (options.last == Phase::Partitioned)
    return success();
  if (failed(run("60-stages.mlir", buildStages)) ||
      failed(run("70-schedule.mlir", buildSchedule)))
    return failure();
  if (options.last == Phase::Scheduled)
    return success();
  return run("80-plan.mlir", [&](OpPassManager &pm) {
    buildPlannedPhase(pm, options.elide);
  });
}

} // namespace reckon
