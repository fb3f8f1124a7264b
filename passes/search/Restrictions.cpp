//===- Restrictions.cpp - what the user fixed, and the space without it ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Space.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

std::string Misfit::str() const {
  auto says = [this](const char *key, const char *what) {
    return std::string(key) + " " + std::to_string(value) +
           " does not divide " + what + " " + std::to_string(size);
  };
  switch (kind) {
  case World:
    return says("the product of the degrees,", "the number of devices,");
  case Heads:
    return says("tensor_parallel", "num_attention_heads");
  case KvHeads:
    return says("tensor_parallel", "num_key_value_heads");
  case Ffn:
    return says("tensor_parallel", "intermediate_size");
  case Vocab:
    return says("tensor_parallel", "vocab_size");
  case Experts:
    return says("expert_parallel", "the number of experts,");
  case ExpertFfn:
    return says("expert_tensor_parallel", "moe_intermediate_size");
  case ExpertGroup:
    return says("expert_parallel times expert_tensor_parallel,",
                "the ranks of a pipeline stage,");
  case Sequence:
    return says("twice context_parallel,", "sequence_length");
  case Layers:
    return "pipeline_parallel times virtual_pipeline, " +
           std::to_string(value) + ", is more than the " +
           std::to_string(size) + " stages that the layers can fill";
  case LayoutLength:
    return "pipeline_parallel times virtual_pipeline, " +
           std::to_string(value) + ", is not the length of pipeline_layout, " +
           std::to_string(size);
  case Batch:
    return says("data_parallel", "global_batch_size");
  case MicroBatch:
    return says("micro_batch_size", "the sequences of a replica,");
  case Tokens:
    return says("tensor_parallel", "the tokens that sequence_parallel splits,");
  case ContextHeads:
    return says("tensor_parallel times context_parallel,",
                "num_attention_heads, which all_to_all exchanges,");
  case Chunks:
    return "no pipeline_schedule and virtual_pipeline allowed go with "
           "pipeline_parallel " +
           std::to_string(value);
  case Schedule:
    return "the schedule is not defined for " + std::to_string(value) +
           " micro-batches on " + std::to_string(size) + " pipeline ranks";
  }
  return "";
}

/// A key that restricts nothing; Space then takes the domain that it knows.
template <typename T> static void lift(reckon::Choice<T> &key) {
  key.isAuto = true;
  key.values.clear();
}

Spec search::liftRestrictions(const Spec &spec) {
  Spec lifted = spec;
  ParallelismSpec &open = lifted.parallelism;
  lift(open.tensorParallel);
  lift(open.sequenceParallel);
  lift(open.contextParallel);
  lift(open.contextParallelMethod);
  lift(open.pipelineParallel);
  lift(open.virtualPipeline);
  lift(open.pipelineSchedule);
  lift(open.expertParallel);
  lift(open.expertTensorParallel);
  lift(open.dataParallel);
  lift(open.zeroStage);
  lift(open.microBatchSize);
  lift(open.recompute);
  open.recomputeLayers.reset();
  open.pipelineLayout.value.clear();
  // What was given by hand may be outside what is tried unasked.
  auto add = [](auto &key, const auto &original, auto all) {
    if (original.isAuto)
      return;
    for (const auto &value : original.values)
      if (std::find(all.begin(), all.end(), value) == all.end())
        all.push_back(value);
    key.values = all;
  };
  add(open.zeroStage, spec.parallelism.zeroStage,
      std::vector<int64_t>{0, 1, 2, 3});
  return lifted;
}

std::vector<Spec> search::liftedSpecs(const Spec &spec) {
  std::vector<Spec> specs{liftRestrictions(spec), spec};
  if (!spec.parallelism.pipelineLayout->empty()) {
    specs.push_back(specs.front());
    specs.back().parallelism.pipelineLayout = spec.parallelism.pipelineLayout;
  }
  return specs;
}

LimitMask search::restrictionsBroken(const Spec &spec,
                                     const model::Choice &choice) {
  const ParallelismSpec &open = spec.parallelism;
  LimitMask mask = 0;
  auto check = [&](Limit limit, const auto &key, const auto &value) {
    if (!key.isAuto && !key.allows(value))
      mask |= bit(limit);
  };
  check(Limit::TensorParallel, open.tensorParallel, choice.tp);
  if (choice.tp > 1)
    check(Limit::SequenceParallel, open.sequenceParallel,
          choice.sequenceParallel);
  check(Limit::ContextParallel, open.contextParallel, choice.cp);
  if (choice.cp > 1)
    check(Limit::ContextMethod, open.contextParallelMethod,
          choice.contextMethod);
  check(Limit::PipelineParallel, open.pipelineParallel, choice.pp);
  check(Limit::VirtualPipeline, open.virtualPipeline, choice.v);
  if (choice.pp > 1)
    check(Limit::Schedule, open.pipelineSchedule, choice.schedule);
  check(Limit::ExpertParallel, open.expertParallel, choice.ep);
  check(Limit::ExpertTensorParallel, open.expertTensorParallel, choice.etp);
  check(Limit::DataParallel, open.dataParallel, choice.dp);
  if (choice.dp * choice.cp > 1)
    check(Limit::ZeroStage, open.zeroStage, choice.zero);
  check(Limit::MicroBatch, open.microBatchSize, choice.microBatch);
  check(Limit::Recompute, open.recompute, choice.recompute);
  if (!open.pipelineLayout->empty() && *open.pipelineLayout != choice.layout)
    mask |= bit(Limit::Layout);
  return mask;
}
