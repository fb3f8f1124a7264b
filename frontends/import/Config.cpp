//===- Config.cpp - what the plan file records of the spec ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/import/Config.h"

using namespace mlir;

namespace reckon {
namespace {

using Entries = std::initializer_list<std::pair<StringRef, Attribute>>;

DictionaryAttr dictionary(Builder &b, Entries entries) {
  NamedAttrList list;
  for (const auto &[key, value] : entries)
    list.append(key, value);
  return list.getDictionary(b.getContext());
}

} // namespace

std::string fileName(const SourceLoc &at) {
  return at.file.substr(at.file.rfind('/') + 1);
}

DictionaryAttr planConfig(Builder &b, const Spec &spec,
                          const model::Choice &choice,
                          const PlanFacts &facts) {
  auto i64 = [&](int64_t value) { return b.getI64IntegerAttr(value); };
  auto f64 = [&](double value) { return b.getF64FloatAttr(value); };
  auto text = [&](StringRef value) { return b.getStringAttr(value); };
  auto place = [&](SourceLoc at) {
    at.file = fileName(at);
    return text(at.str());
  };

  const TrainingSpec &training = spec.training;
  const OptimizerSpec &adamw = training.optimizer;
  const LrScheduleSpec &lr = training.lrSchedule;
  const ParallelismSpec &parallel = spec.parallelism;
  return dictionary(
      b,
      {{"name", text(*spec.model.name)},
       {"precision", text(toString(choice.precision))},
       {"seed", i64(*training.seed)},
       {"vocab_size", i64(*spec.model.vocabSize)},
       {"schedule", text(toString(choice.schedule))},
       {"recompute", text(toString(choice.recompute))},
       {"sequence_parallel", b.getBoolAttr(choice.sequenceParallel)},
       {"zero_stage", i64(choice.zero)},
       {"mesh", dictionary(b, {{"tp", i64(choice.tp)},
                               {"cp", i64(choice.cp)},
                               {"ep", i64(choice.ep)},
                               {"dp", i64(choice.dp)},
                               {"pp", i64(choice.pp)}})},
       {"origins",
        dictionary(b,
                   {{"tensor_parallel", place(parallel.tensorParallel.loc)},
                    {"data_parallel", place(parallel.dataParallel.loc)},
                    {"pipeline_parallel",
                     place(parallel.pipelineParallel.loc)},
                    {"zero_stage", place(parallel.zeroStage.loc)}})},
       {"optimizer", dictionary(b, {{"lr", f64(*adamw.lr)},
                                    {"beta1", f64(*adamw.beta1)},
                                    {"beta2", f64(*adamw.beta2)},
                                    {"eps", f64(*adamw.eps)},
                                    {"weight_decay", f64(*adamw.weightDecay)},
                                    {"clip_grad", f64(*adamw.clipGrad)}})},
       {"lr_schedule",
        dictionary(b, {{"type", text(toString(*lr.type))},
                       {"warmup_steps", i64(*lr.warmupSteps)},
                       {"decay_steps", i64(*lr.decaySteps)},
                       {"train_steps", i64(*training.trainSteps)},
                       {"min_lr", f64(*lr.minLr)}})},
       {"data", dictionary(b, {{"format", text(*training.data.format)},
                               {"path", text(*training.data.path)},
                               {"tokenizer", text(*training.data.tokenizer)}})},
       {"model_flops_per_token", f64(facts.modelFlopsPerToken)},
       {"peak_flops", f64(facts.peakFlops)}});
}

} // namespace reckon
