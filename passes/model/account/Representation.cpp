//===- Representation.cpp - what a framework can do at all ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Representation.h"

using namespace reckon;
using namespace reckon::model;

static std::string megatron(const model::Choice &choice,
                            const ModelShape &model) {
  if (choice.zero > 1)
    return "Megatron's distributed optimizer shards the optimizer only "
           "(zero_stage 0 or 1)";
  switch (choice.schedule) {
  case ScheduleKind::OneFOneB:
    if (choice.v > 1)
      return "Megatron runs several chunks a rank as interleaved_1f1b";
    break;
  case ScheduleKind::Interleaved:
    // m mod p is 0 or no less than p: the last group of p is whole.
    if (choice.numMicroBatches % choice.pp != 0)
      return "Megatron's interleaved schedule needs a multiple of "
             "pipeline_parallel micro-batches";
    break;
  default:
    return std::string("Megatron has no pipeline_schedule ") +
           toString(choice.schedule);
  }
  if (model.isMoe() && choice.tp > 1 && !choice.sequenceParallel)
    return "Megatron needs sequence_parallel for experts with "
           "tensor_parallel";
  return "";
}

/// Of the frameworks only Megatron parts a head of keys over ranks.
static bool partsKeyHeads(const model::Choice &choice,
                          const ModelShape &model) {
  return !model.isMla() && model.kvHeads % choice.tp != 0;
}

static std::string deepspeed(const model::Choice &choice,
                             const ModelShape &model) {
  if (partsKeyHeads(choice, model))
    return "DeepSpeed's AutoTP deals out whole key heads (tensor_parallel "
           "divides num_key_value_heads)";
  // module_inject/auto_ep_folding.py, validate_folding_global.
  if (choice.etp > 1)
    return "DeepSpeed's AutoEP leaves experts whole (expert_tensor_parallel 1)";
  if (choice.ep > 1 && choice.tp > 1 && choice.pp > 1)
    return "DeepSpeed's AutoEP goes with tensor_parallel or with a pipeline, "
           "not with both";
  if (choice.ep > 1 && choice.tp > 1 && choice.cp > 1)
    return "DeepSpeed's AutoEP goes with tensor_parallel or with "
           "context_parallel, not with both";
  if (choice.pp > 1 && choice.zero > 1)
    return "DeepSpeed's pipeline engine refuses zero_stage 2 and 3";
  if (choice.v > 1)
    return "DeepSpeed's pipeline engine has one chunk a rank";
  if (choice.pp > 1 && choice.schedule != ScheduleKind::OneFOneB)
    return "DeepSpeed's pipeline engine runs 1f1b only";
  if (choice.cp > 1 && choice.contextMethod != ContextMethod::AllToAll)
    return "DeepSpeed splits sequences by all_to_all (Ulysses) only";
  if (choice.recompute == Recompute::Selective)
    return "DeepSpeed checkpoints whole layers only";
  return "";
}

static std::string torchtitan(const model::Choice &choice,
                              const ModelShape &model) {
  if (partsKeyHeads(choice, model))
    return "torchtitan views whole key heads (tensor_parallel divides "
           "num_key_value_heads)";
  if (choice.zero == 1)
    return "torchtitan has FSDP2 (zero_stage 2 or 3) or plain data "
           "parallelism (0)";
  if (choice.tp > 1 && !choice.sequenceParallel)
    return "torchtitan's tensor parallelism is always sequence parallel";
  if (choice.cp > 1 && choice.contextMethod == ContextMethod::AllToAll)
    return "torchtitan's context parallelism is ring or all_gather";
  if (choice.schedule == ScheduleKind::ZbH2 ||
      choice.schedule == ScheduleKind::Synthesized)
    return std::string("torchtitan has no pipeline_schedule ") +
           toString(choice.schedule);
  return "";
}

std::string model::representationForbids(Representation representation,
                                         const model::Choice &choice,
                                         const ModelShape &model) {
  switch (representation) {
  case Representation::Reckon:
    return "";
  case Representation::Megatron:
    return megatron(choice, model);
  case Representation::DeepSpeed:
    return deepspeed(choice, model);
  case Representation::TorchTitan:
    return torchtitan(choice, model);
  }
  return "";
}
