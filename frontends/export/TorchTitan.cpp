//===- TorchTitan.cpp - a torchtitan configuration in Python --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Since its files in TOML are gone, torchtitan is configured by a function of a
// Python module, chosen by `--module M --config F`.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/TorchTitan.h"

using namespace reckon;
using namespace reckon::exports;

namespace {

/// The class of torch.distributed.pipelining, or empty.
const char *scheduleName(PipelineSchedule schedule) {
  switch (schedule) {
  case PipelineSchedule::GPipe:
    return "GPipe";
  case PipelineSchedule::OneFOneB:
    return "1F1B";
  case PipelineSchedule::Interleaved:
    return "Interleaved1F1B";
  case PipelineSchedule::Bfs:
    return "LoopedBFS";
  case PipelineSchedule::ZbH1:
    return "InterleavedZeroBubble";
  case PipelineSchedule::ZbV:
    return "ZBVZeroBubble";
  case PipelineSchedule::DualPipeV:
    return "DualPipeV";
  case PipelineSchedule::Csv:
    return "PipelineScheduleMulti";
  case PipelineSchedule::ZbH2:
  case PipelineSchedule::Synthesized:
    return "";
  }
  return "";
}

std::string item(const std::string &name, const std::string &value) {
  return "            " + name + "=" + value + ",\n";
}

std::string item(const std::string &name, int64_t value) {
  return item(name, std::to_string(value));
}

/// One list of module names a virtual stage, in the order of the forward.
std::string moduleLists(const std::vector<int64_t> &layout) {
  std::string text = "[\n";
  int64_t layer = 0;
  for (size_t stage = 0; stage < layout.size(); ++stage) {
    int64_t end = layer + layout[stage];
    text += "                ";
    if (stage == 0)
      text += "[\"tok_embeddings\"] + ";
    text += "layer_names(" + std::to_string(layer) + ", " +
            std::to_string(end) + ")";
    if (stage + 1 == layout.size())
      text += " + [\"norm\", \"lm_head\"]";
    text += ",\n";
    layer = end;
  }
  return text + "            ]";
}

std::string trainingSection(const ExportInput &input) {
  const TrainingSpec &training = input.spec.training;
  const model::Choice &choice = input.choice;
  std::string text = "        training=TrainingConfig(\n";
  // A pipeline splits the local batch into micro-batches; without one the
  // trainer accumulates gradients over local batches.
  bool pipeline = choice.pp > 1;
  text += item("local_batch_size",
               choice.microBatch * (pipeline ? choice.numMicroBatches : 1));
  text += item("global_batch_size", *training.globalBatchSize);
  text += item("seq_len", *training.sequenceLength);
  text += item("steps", *training.trainSteps);
  double clip = *training.optimizer.clipGrad;
  text += item("max_norm", clip > 0 ? number(clip) : "float(\"inf\")");
  text += item("dtype", "\"float32\"");
  text += item("mixed_precision_param", *training.precision == Precision::Fp32
                                            ? "\"float32\""
                                            : "\"bfloat16\"");
  text += item("mixed_precision_reduce", "\"float32\"");
  // Neither pipelines nor the standard expert dispatch can be captured.
  if (pipeline || choice.ep > 1)
    text += item("disable_cuda_graphs", "True");
  return text + "        ),\n";
}

std::string parallelismSection(const ExportInput &input, Exported &out) {
  const model::Choice &choice = input.choice;
  std::string text = "        parallelism=ParallelismConfig(\n";
  bool sharded = choice.zero >= 2;
  text += item("data_parallel_replicate_degree", sharded ? 1 : choice.dp);
  text += item("data_parallel_shard_degree", sharded ? choice.dp : 1);
  if (sharded)
    text += item("fsdp_reshard_after_forward",
                 choice.zero == 3 ? "\"always\"" : "\"never\"");
  text += item("tensor_parallel_degree", choice.tp);
  text += item("enable_sequence_parallel",
               choice.tp == 1 || choice.sequenceParallel ? "True" : "False");
  text += item("context_parallel_degree", choice.cp);
  text += item("expert_parallel_degree", choice.ep);
  text += item("pipeline_parallel_degree", choice.pp);
  if (choice.pp > 1) {
    text += item("pipeline_parallel_schedule",
                 "\"" + std::string(scheduleName(choice.schedule)) + "\"");
    if (choice.schedule == PipelineSchedule::Csv)
      text += item("pipeline_parallel_schedule_csv",
                   "\"" + input.spec.parallelism.scheduleFile + "\"");
    text += item("pipeline_parallel_microbatch_size", choice.microBatch);
    text += item("module_fqns_per_model_part", moduleLists(choice.layout));
    if (choice.schedule == PipelineSchedule::ZbH1)
      out.omit("parallelism.pipeline_schedule",
               "zb_h1 is torch's InterleavedZeroBubble with one stage a rank");
  }
  return text + "        ),\n";
}

std::string scheduleSection(const ExportInput &input) {
  const TrainingSpec &training = input.spec.training;
  const LrScheduleSpec &schedule = training.lrSchedule;
  double lr = *training.optimizer.lr;
  double least = lr > 0 ? *schedule.minLr / lr : 0;
  std::string text = "        lr_scheduler=LRSchedulersContainer.Config(\n";
  text += item("warmup_steps", *schedule.warmupSteps);
  switch (*schedule.type) {
  case LrScheduleType::Constant:
    // A decay to the whole of it.
    text += item("decay_type", "\"linear\"");
    least = 1;
    break;
  case LrScheduleType::Linear:
    text += item("decay_type", "\"linear\"");
    break;
  case LrScheduleType::Cosine:
    text += item("decay_type", "\"cosine\"");
    break;
  case LrScheduleType::Wsd:
    text += item("decay_type", "\"linear\"");
    text +=
        item("decay_ratio", number(static_cast<double>(*schedule.decaySteps) /
                                   static_cast<double>(*training.trainSteps)));
    break;
  }
  text += item("min_lr_factor", number(least));
  return text + "        ),\n";
}

std::string recomputeSection(const ExportInput &input, Exported &out) {
  const model::Choice &choice = input.choice;
  const auto &key = input.spec.parallelism.recompute;
  if (!choice.recomputeLayers.empty())
    out.refuse(key.given ? key.loc : input.spec.parallelism.loc,
               "expected recompute none, selective or full, which torchtitan "
               "has, got layers " +
                   commaList(choice.recomputeLayers) +
                   "; set parallelism.recompute to one of them");
  switch (choice.recompute) {
  case Recompute::None:
    return "        activation_checkpoint=None,\n";
  case Recompute::Selective:
    out.omit("parallelism.recompute",
             "torchtitan's selective policy keeps every second matrix product, "
             "Reckon's recomputes attention only");
    return "        activation_checkpoint=SelectiveAC.Config(),\n";
  case Recompute::Full:
    return "        activation_checkpoint=FullAC.Config(),\n";
  }
  return "";
}

/// What is an error because it would change the computation or its cost.
void refuseUnknown(const ExportInput &input, Exported &out) {
  const ParallelismSpec &keys = input.spec.parallelism;
  const TrainingSpec &training = input.spec.training;
  const model::Choice &choice = input.choice;
  if (*training.precision == Precision::Fp8)
    out.refuse(training.precision.loc,
               "expected training.precision fp32 or bf16 (fp8 is a converter "
               "that torchtitan applies to a model, not to a configuration of "
               "one), got fp8; change it");
  if (*training.gradReduceDtype == GradReduceDtype::Bf16)
    out.refuse(training.gradReduceDtype.loc,
               "expected training.grad_reduce_dtype fp32, the only one of "
               "torchtitan, got bf16; change it");
  if (choice.etp > 1)
    out.refuse(keys.expertTensorParallel.loc,
               "expected expert_tensor_parallel 1, as torchtitan 0.3.0 has no "
               "other, got " +
                   std::to_string(choice.etp) + "; change it");
  if (choice.cp > 1 && choice.contextMethod == ContextMethod::Ring)
    out.refuse(keys.contextParallelMethod.loc,
               "expected context_parallel_method all_gather, as torchtitan "
               "0.3.0 gathers keys and values, got ring; change it");
  if (*keys.moeCapacityFactor > 0)
    out.refuse(keys.moeCapacityFactor.loc,
               "expected no capacity factor, as torchtitan's standard expert "
               "dispatch drops no tokens, got "
               "parallelism.moe_capacity_factor " +
                   number(*keys.moeCapacityFactor) + "; set it to none");
}

std::string launchScript(const ExportInput &input, const std::string &top) {
  return "#!/bin/bash\n" + top +
         "# Start it on every node, with torchtitan installed.\n"
         "set -eu\n"
         "export PYTHONPATH=\"$(dirname \"$0\")${PYTHONPATH:+:$PYTHONPATH}\"\n"
         "torchrun --nnodes " +
         std::to_string(*input.spec.cluster.nodes) + " --nproc-per-node " +
         std::to_string(*input.spec.cluster.gpusPerNode) +
         " \\\n"
         "  --rdzv-backend c10d "
         "--rdzv-endpoint \"${MASTER_ADDR:-127.0.0.1}:${MASTER_PORT:-29500}\" "
         "\\\n"
         "  -m torchtitan.train --module torchtitan_config --config train "
         "\"$@\"\n";
}

} // namespace

Exported exports::exportTorchTitan(const ExportInput &input) {
  Exported out;
  refuseForbidden(Target::TorchTitan, input, out);
  refuseUnknown(input, out);
  const TrainingSpec &training = input.spec.training;
  const OptimizerSpec &optimizer = training.optimizer;
  std::string body = torchTitanModel(input, out);
  if (input.choice.pp > 1)
    body += "\n\ndef layer_names(first, end):\n"
            "    return [f\"layers.{i}\" for i in range(first, end)]\n";
  std::string loss = "CrossEntropyLoss.Config(global_vocab_size=" +
                     std::to_string(*input.spec.model.vocabSize) + ")";
  body += "\n\ndef train():\n"
          "    return Trainer.Config(\n"
          "        model_spec=model_spec(),\n"
          "        loss=" +
          loss +
          ",\n"
          "        optimizer=default_adamw(\n" +
          item("lr", number(*optimizer.lr)) +
          item("betas", "(" + number(*optimizer.beta1) + ", " +
                            number(*optimizer.beta2) + ")") +
          item("eps", number(*optimizer.eps)) +
          item("weight_decay", number(*optimizer.weightDecay)) + "        ),\n";
  body += scheduleSection(input) + trainingSection(input) +
          parallelismSection(input, out) + recomputeSection(input, out);
  body += "        dataloader=HuggingFaceTextDataLoader.Config("
          "dataset=\"c4\"),\n"
          "        compile=CompileConfig(enable=True),\n"
          "        debug=DebugConfig(" +
          std::string("seed=") + std::to_string(*training.seed) + "),\n    )\n";
  if (*input.spec.model.numNextnPredictLayers > 0)
    out.omit("model.num_nextn_predict_layers",
             "the layers are there; their loss is torchtitan's MTPLoss, whose "
             "weight the spec does not name");
  out.omit("training.optimizer.weight_decay",
           "applied to all parameters; Reckon decays matrices only");
  if (training.data.given && *training.data.format == "megatron")
    out.omit("training.data", "torchtitan reads no .bin and .idx; the file "
                              "names its dataset c4");
  if (training.checkpoint.given)
    out.omit("training.checkpoint", "set CheckpointManager.Config in the file");
  omitCommon(input, out);
  std::string top = header(Target::TorchTitan, input, out.notExpressed);
  out.files.push_back({"torchtitan_config.py", top + body});
  out.files.push_back({"torchtitan.sh", launchScript(input, top)});
  return out;
}
