//===- CheckSchedule.cpp - what schedules and frameworks ask for ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/CheckText.h"
#include "frontends/spec/Reader.h"

namespace reckon {
namespace {

using S = PipelineSchedule;

/// Chunks of a pipeline rank: exactly one, exactly two, or any number.
enum class Chunks { One, Two, Any };

Chunks chunksOf(S schedule) {
  switch (schedule) {
  case S::GPipe:
  case S::OneFOneB:
  case S::ZbH1:
  case S::ZbH2:
  case S::Synthesized:
    return Chunks::One;
  case S::ZbV:
  case S::DualPipeV:
    return Chunks::Two;
  case S::Interleaved:
  case S::Bfs:
  case S::Csv:
    return Chunks::Any;
  }
  return Chunks::Any;
}

} // namespace

void checkSchedule(ParallelismSpec &p, int64_t microBatches, Reader &reader) {
  const Choice<S> &schedule = p.pipelineSchedule;
  Choice<int64_t> &v = p.virtualPipeline;
  // One rank is no pipeline, whatever its schedule is called.
  bool pipeline = !p.pipelineParallel.fixed() || p.pipelineParallel.value() > 1;
  if (!schedule.fixed() || !pipeline)
    return;
  S kind = schedule.value();
  std::string name = toString(kind);
  Chunks chunks = chunksOf(kind);
  if (v.isAuto && chunks != Chunks::Any)
    v.values = {chunks == Chunks::One ? 1 : 2};
  int64_t fixed = v.fixed() ? v.value() : 0;
  if (fixed > 1 && chunks == Chunks::One)
    reader.error(v.loc, "expected parallelism.virtual_pipeline 1 for "
                        "pipeline_schedule " +
                            name + ", got " + num(fixed) +
                            "; use interleaved_1f1b or bfs for several chunks");
  if (fixed > 0 && fixed != 2 && chunks == Chunks::Two)
    reader.error(v.loc, "expected parallelism.virtual_pipeline 2 for "
                        "pipeline_schedule " +
                            name + ", which folds its stages into a V, got " +
                            num(fixed) + "; use 2 or auto");
  if (kind == S::Interleaved && fixed == 1)
    reader.warn(schedule.loc, "parallelism.pipeline_schedule interleaved_1f1b "
                              "is 1f1b with virtual_pipeline 1");
  if (microBatches == 0 || !p.pipelineParallel.fixed())
    return;
  int64_t pp = p.pipelineParallel.value();
  // Micro-batches go through the chunks in groups of pp, as Megatron's default
  // has it; a shorter last group would wait for chunks that never come.
  if (kind == S::Interleaved && fixed > 1 && microBatches % pp != 0)
    reader.error(schedule.loc,
                 "expected a number of micro-batches that pipeline_parallel " +
                     num(pp) + " divides for interleaved_1f1b, got " +
                     num(microBatches) +
                     "; change micro_batch_size or global_batch_size, or use "
                     "bfs");
  if (kind == S::DualPipeV && microBatches < 2 * pp)
    reader.error(schedule.loc,
                 "expected at least " + num(2 * pp) +
                     " micro-batches (twice pipeline_parallel) for "
                     "dualpipe_v, got " +
                     num(microBatches) +
                     "; use a smaller micro_batch_size or another schedule");
}

void checkRepresentation(const ParallelismSpec &p, Reader &reader) {
  Representation framework = *p.representation;
  std::string name = toString(framework);
  auto refuse = [&](const SourceLoc &loc, const std::string &what,
                    const std::string &remedy) {
    reader.error(loc, "expected what " + name + " can do with " +
                          "parallelism.representation " + name + ", got " +
                          what + "; " + remedy + ", or represent as reckon");
  };
  bool pipeline = !p.pipelineParallel.fixed() || p.pipelineParallel.value() > 1;
  const Choice<S> &schedule = p.pipelineSchedule;
  auto forbidSchedules = [&](std::initializer_list<S> able,
                             const std::string &remedy) {
    if (!pipeline || !schedule.fixed())
      return;
    for (S each : able)
      if (schedule.value() == each)
        return;
    refuse(schedule.loc,
           std::string("pipeline_schedule ") + toString(schedule.value()),
           remedy);
  };
  int64_t zero = p.zeroStage.fixed() ? p.zeroStage.value() : 0;
  const Choice<ContextMethod> &method = p.contextParallelMethod;
  bool context = p.contextParallel.fixed() && p.contextParallel.value() > 1 &&
                 method.fixed();
  switch (framework) {
  case Representation::Reckon:
    return;
  case Representation::Megatron:
    forbidSchedules({S::OneFOneB, S::Interleaved},
                    "use 1f1b or interleaved_1f1b");
    if (zero > 1)
      refuse(p.zeroStage.loc, "zero_stage " + num(zero),
             "use 1, its distributed optimizer");
    return;
  case Representation::DeepSpeed:
    forbidSchedules({S::OneFOneB}, "use 1f1b");
    if (p.expertTensorParallel.fixed() && p.expertTensorParallel.value() > 1)
      refuse(p.expertTensorParallel.loc,
             "expert_tensor_parallel " + num(p.expertTensorParallel.value()),
             "use 1");
    // Its pipeline engine asserts this.
    if (zero > 1 && p.pipelineParallel.fixed() &&
        p.pipelineParallel.value() > 1)
      refuse(p.zeroStage.loc,
             "zero_stage " + num(zero) + " with pipeline_parallel " +
                 num(p.pipelineParallel.value()),
             "use zero_stage 1 or pipeline_parallel 1");
    if (context && method.value() != ContextMethod::AllToAll)
      refuse(method.loc,
             std::string("context_parallel_method ") + toString(method.value()),
             "use all_to_all");
    return;
  case Representation::TorchTitan:
    forbidSchedules({S::GPipe, S::OneFOneB, S::Interleaved, S::Bfs, S::ZbH1,
                     S::ZbV, S::DualPipeV, S::Csv},
                    "use one of its schedules");
    if (context && method.value() == ContextMethod::AllToAll)
      refuse(method.loc, "context_parallel_method all_to_all",
             "use ring or all_gather");
    return;
  }
}

} // namespace reckon
