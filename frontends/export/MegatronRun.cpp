//===- MegatronRun.cpp - training and parallelism as arguments ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Megatron.h"

using namespace reckon;
using namespace reckon::exports;

static void addSchedule(const TrainingSpec &training, ArgumentList &list) {
  const LrScheduleSpec &schedule = training.lrSchedule;
  switch (*schedule.type) {
  case LrScheduleType::Constant:
    list.add("--lr-decay-style", "constant");
    break;
  case LrScheduleType::Linear:
    list.add("--lr-decay-style", "linear");
    break;
  case LrScheduleType::Cosine:
    list.add("--lr-decay-style", "cosine");
    break;
  case LrScheduleType::Wsd:
    list.add("--lr-decay-style", "WSD");
    list.add("--lr-wsd-decay-style", "linear");
    list.add("--lr-wsd-decay-iters", *schedule.decaySteps);
    break;
  }
  list.add("--lr-warmup-iters", *schedule.warmupSteps);
  list.add("--lr-decay-iters", *training.trainSteps);
  list.add("--min-lr", *schedule.minLr);
}

static void addPrecision(const TrainingSpec &training, ArgumentList &list) {
  if (*training.precision != Precision::Fp32)
    list.add("--bf16");
  if (*training.precision == Precision::Fp8)
    list.add("--fp8-format", "hybrid");
  if (*training.gradReduceDtype == GradReduceDtype::Bf16 &&
      *training.precision != Precision::Fp32)
    list.add("--grad-reduce-in-bf16");
}

static void addCheckpoint(const CheckpointSpec &checkpoint, ArgumentList &list,
                          Exported &out) {
  if (!checkpoint.given)
    return;
  if (*checkpoint.interval > 0) {
    list.add("--save", *checkpoint.dir);
    list.add("--save-interval", *checkpoint.interval);
    if (*checkpoint.async)
      list.add("--async-save");
  } else {
    out.omit("training.checkpoint", "Megatron wants a fixed --save-interval; "
                                    "give training.checkpoint.interval");
  }
  if (checkpoint.keep.given)
    out.omit("training.checkpoint.keep", "no such argument");
}

void exports::addTraining(const ExportInput &input, ArgumentList &list,
                          Exported &out) {
  const TrainingSpec &training = input.spec.training;
  const OptimizerSpec &optimizer = training.optimizer;
  list.group("Training");
  list.add("--seq-length", *training.sequenceLength);
  list.add("--micro-batch-size", input.choice.microBatch);
  list.add("--global-batch-size", *training.globalBatchSize);
  list.add("--train-iters", *training.trainSteps);
  list.add("--eval-iters", int64_t{0});
  list.add("--seed", *training.seed);
  list.add("--optimizer", "adam");
  list.add("--lr", *optimizer.lr);
  addSchedule(training, list);
  list.add("--weight-decay", *optimizer.weightDecay);
  list.add("--adam-beta1", *optimizer.beta1);
  list.add("--adam-beta2", *optimizer.beta2);
  list.add("--adam-eps", *optimizer.eps);
  list.add("--clip-grad", *optimizer.clipGrad);
  addPrecision(training, list);
  if (training.data.given && *training.data.format == "megatron")
    list.add("--data-path", training.data.resolvedPath());
  else
    list.add("--mock-data");
  addCheckpoint(training.checkpoint, list, out);
}

static void addStages(const ExportInput &input, ArgumentList &list) {
  const model::Choice &choice = input.choice;
  int64_t mtp = *input.spec.model.numNextnPredictLayers;
  list.add("--pipeline-model-parallel-size", choice.pp);
  if (choice.stages() == 1)
    return;
  if (!evenLayout(choice.layout))
    list.add("--pipeline-model-parallel-layout",
             layoutString(choice.layout, mtp));
  else if (choice.v > 1)
    list.add("--num-layers-per-virtual-pipeline-stage", choice.layout[0]);
}

static void addRecompute(const ExportInput &input, ArgumentList &list,
                         Exported &out) {
  const model::Choice &choice = input.choice;
  switch (choice.recompute) {
  case Recompute::None:
    return;
  case Recompute::Selective:
    list.add("--recompute-granularity", "selective");
    list.add("--recompute-modules", "core_attn");
    return;
  case Recompute::Full:
    break;
  }
  list.add("--recompute-granularity", "full");
  if (choice.recomputeLayers.empty()) {
    list.add("--recompute-method", "uniform");
    list.add("--recompute-num-layers", int64_t{1});
    return;
  }
  std::optional<int64_t> layers = recomputedLayers(choice);
  if (!layers) {
    const auto &key = input.spec.parallelism.recompute;
    out.refuse(key.given ? key.loc : input.spec.parallelism.loc,
               "expected one number of recomputed layers for all stages, which "
               "is what Megatron's --recompute-num-layers says, got " +
                   commaList(choice.recomputeLayers) +
                   "; set parallelism.recompute to none, full or {layers: n}");
    return;
  }
  list.add("--recompute-method", "block");
  list.add("--recompute-num-layers", *layers);
}

void exports::addParallelism(const ExportInput &input, ArgumentList &list,
                             Exported &out) {
  const model::Choice &choice = input.choice;
  list.group("Parallelism");
  list.add("--tensor-model-parallel-size", choice.tp);
  if (choice.sequenceParallel)
    list.add("--sequence-parallel");
  list.add("--context-parallel-size", choice.cp);
  if (choice.cp > 1) {
    const char *type = "p2p";
    if (choice.contextMethod == ContextMethod::AllGather)
      type = "all_gather";
    else if (choice.contextMethod == ContextMethod::AllToAll)
      type = "a2a";
    list.add("--cp-comm-type", type);
  }
  addStages(input, list);
  if (*input.spec.model.numExperts > 0) {
    list.add("--expert-model-parallel-size", choice.ep);
    // Megatron's own default is the tensor-parallel size.
    list.add("--expert-tensor-parallel-size", choice.etp);
  }
  if (choice.zero == 1) {
    list.add("--use-distributed-optimizer");
    list.add("--overlap-grad-reduce");
    list.add("--overlap-param-gather");
  } else {
    list.add("--overlap-grad-reduce");
  }
  addRecompute(input, list, out);
}
