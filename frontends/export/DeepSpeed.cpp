//===- DeepSpeed.cpp - a DeepSpeed configuration in JSON ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The JSON says how a model is trained; the model itself and the number of
// pipeline stages are code of the client, so they are listed as not expressed.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Text.h"

#include <nlohmann/json.hpp>

using namespace reckon;
using namespace reckon::exports;
using Json = nlohmann::ordered_json;

static Json zeroSection(const ExportInput &input) {
  int64_t stage = input.choice.zero;
  Json zero;
  zero["stage"] = stage;
  if (stage == 0)
    return zero;
  zero["overlap_comm"] = true;
  zero["contiguous_gradients"] = true;
  zero["reduce_scatter"] = true;
  // The buffers that Reckon's DeepSpeed memory profile accounts for.
  zero["reduce_bucket_size"] = 500000000;
  if (stage < 3) {
    zero["allgather_partitions"] = true;
    zero["allgather_bucket_size"] = 500000000;
  } else {
    zero["stage3_prefetch_bucket_size"] = 50000000;
    zero["stage3_param_persistence_threshold"] = 100000;
    zero["stage3_max_live_parameters"] = 1000000000;
    zero["stage3_max_reuse_distance"] = 1000000000;
    zero["stage3_gather_16bit_weights_on_model_save"] = true;
  }
  return zero;
}

static Json optimizerSection(const OptimizerSpec &optimizer) {
  Json section;
  section["type"] = "AdamW";
  section["params"]["lr"] = *optimizer.lr;
  section["params"]["betas"] = {*optimizer.beta1, *optimizer.beta2};
  section["params"]["eps"] = *optimizer.eps;
  section["params"]["weight_decay"] = *optimizer.weightDecay;
  return section;
}

/// Null when none of DeepSpeed's schedules is meant.
static Json schedulerSection(const ExportInput &input, Exported &out) {
  const TrainingSpec &training = input.spec.training;
  const LrScheduleSpec &schedule = training.lrSchedule;
  double lr = *training.optimizer.lr;
  if (*schedule.type == LrScheduleType::Constant && *schedule.warmupSteps == 0)
    return nullptr;
  if (*schedule.type == LrScheduleType::Wsd) {
    out.omit("training.lr_schedule", "DeepSpeed has no warm-up, stable, decay "
                                     "schedule; pass one of your own to "
                                     "deepspeed.initialize");
    return nullptr;
  }
  Json params;
  // DeepSpeed counts a warm-up of at least one step.
  int64_t warmup = std::max<int64_t>(1, *schedule.warmupSteps);
  Json section;
  switch (*schedule.type) {
  case LrScheduleType::Constant:
    section["type"] = "WarmupLR";
    params["warmup_min_lr"] = 0.0;
    params["warmup_max_lr"] = lr;
    break;
  case LrScheduleType::Linear:
    section["type"] = "WarmupDecayLR";
    params["total_num_steps"] = *training.trainSteps;
    params["warmup_min_lr"] = 0.0;
    params["warmup_max_lr"] = lr;
    if (*schedule.minLr > 0)
      out.omit("training.lr_schedule.min_lr",
               "WarmupDecayLR falls to 0, not to " + number(*schedule.minLr));
    break;
  default:
    section["type"] = "WarmupCosineLR";
    params["total_num_steps"] = *training.trainSteps;
    params["warmup_min_ratio"] = 0.0;
    params["cos_min_ratio"] = lr > 0 ? *schedule.minLr / lr : 0.0;
    break;
  }
  params["warmup_num_steps"] = warmup;
  params["warmup_type"] = "linear";
  section["params"] = params;
  return section;
}

static void addParallelism(const ExportInput &input, Json &json,
                           Exported &out) {
  const model::Choice &choice = input.choice;
  const ParallelismSpec &keys = input.spec.parallelism;
  if (choice.tp > 1) {
    json["tensor_parallel"]["autotp_size"] = choice.tp;
    if (choice.sequenceParallel)
      out.omit("parallelism.sequence_parallel",
               "AutoTP copies norms and residuals on every rank; a client that "
               "brings its own tensor parallelism may split them");
  }
  if (choice.cp > 1)
    json["sequence_parallel_size"] = choice.cp;
  if (choice.ep > 1) {
    Json experts;
    experts["enabled"] = true;
    experts["autoep_size"] = choice.ep;
    // Presets name the modules of the Hugging Face model; Qwen 3's experts are
    // our mixtral with norms of queries and keys.
    const ModelSpec &model = input.spec.model;
    if (*model.architecture == "mixtral")
      experts["preset_model"] = *model.qkNorm ? "qwen3_moe" : "mixtral";
    else if (*model.architecture == "deepseek_v3")
      experts["preset_model"] = *model.architecture;
    json["expert_parallel"] = experts;
  }
  if (*keys.moeCapacityFactor > 0)
    out.refuse(keys.moeCapacityFactor.loc,
               "expected no capacity factor, as DeepSpeed's expert parallelism "
               "from a configuration drops no tokens, got "
               "parallelism.moe_capacity_factor " +
                   number(*keys.moeCapacityFactor) + "; set it to none");
  if (choice.pp > 1) {
    json["pipeline"]["stages"] = choice.pp;
    json["pipeline"]["partition"] = "uniform";
    out.omit("parallelism.pipeline_parallel",
             "the client makes a PipelineModule with num_stages=" +
                 std::to_string(choice.pp) +
                 "; the key pipeline.stages only repeats it");
    if (!evenLayout(choice.layout))
      out.omit("parallelism.pipeline_layout",
               "[" + commaList(choice.layout) +
                   "] is the client's partition_method or LayerSpec list");
  }
}

static void addRecompute(const ExportInput &input, Json &json, Exported &out) {
  const model::Choice &choice = input.choice;
  if (choice.recompute != Recompute::Full)
    return;
  const auto &key = input.spec.parallelism.recompute;
  if (!choice.recomputeLayers.empty()) {
    out.refuse(key.given ? key.loc : input.spec.parallelism.loc,
               "expected recompute none or full, which a DeepSpeed "
               "configuration says, got layers " +
                   commaList(choice.recomputeLayers) +
                   "; set parallelism.recompute to none or full");
    return;
  }
  Json &section = json["activation_checkpointing"];
  section["partition_activations"] = false;
  section["contiguous_memory_optimization"] = false;
  section["cpu_checkpointing"] = false;
  // Of the pipeline engine: a checkpoint at every layer.
  if (choice.pp > 1)
    json["pipeline"]["activation_checkpoint_interval"] = 1;
  else
    out.omit("parallelism.recompute",
             "the client wraps its layers in deepspeed.checkpointing, whose "
             "options stand in activation_checkpointing");
}

Exported exports::exportDeepSpeed(const ExportInput &input) {
  Exported out;
  refuseForbidden(Target::DeepSpeed, input, out);
  const model::Choice &choice = input.choice;
  const TrainingSpec &training = input.spec.training;
  out.omit("model", "the client builds it, for example from a Hugging Face "
                    "config.json");
  Json json;
  // batch = micro-batch * micro-batches a step * replicas.
  json["train_batch_size"] = *training.globalBatchSize;
  json["train_micro_batch_size_per_gpu"] = choice.microBatch;
  json["gradient_accumulation_steps"] = choice.numMicroBatches;
  json["gradient_clipping"] = *training.optimizer.clipGrad;
  bool mixed = *training.precision != Precision::Fp32;
  json["bf16"]["enabled"] = mixed;
  if (*training.precision == Precision::Fp8)
    out.refuse(training.precision.loc,
               "expected training.precision fp32 or bf16, which a DeepSpeed "
               "configuration says, got fp8; change it");
  json["data_types"]["grad_accum_dtype"] =
      mixed && *training.gradReduceDtype == GradReduceDtype::Bf16 ? "bf16"
                                                                  : "fp32";
  json["zero_optimization"] = zeroSection(input);
  json["optimizer"] = optimizerSection(training.optimizer);
  if (Json scheduler = schedulerSection(input, out); !scheduler.is_null())
    json["scheduler"] = scheduler;
  addParallelism(input, json, out);
  addRecompute(input, json, out);
  json["steps_per_print"] = 1;
  out.omit("training.sequence_length", "of the client's data");
  out.omit("training.train_steps", "of the client's loop; also the horizon of "
                                   "the scheduler here");
  out.omit("training.seed", "of the client");
  if (training.checkpoint.given)
    out.omit("training.checkpoint", "the client calls save_checkpoint");
  omitCommon(input, out);

  // JSON has no comments, so what is missing stands in a file of its own.
  std::string notes = header(Target::DeepSpeed, input, out.notExpressed);
  notes += "# processes: deepspeed --num_nodes " +
           std::to_string(*input.spec.cluster.nodes) + " --num_gpus " +
           std::to_string(*input.spec.cluster.gpusPerNode) +
           " CLIENT.py --deepspeed_config ds_config.json\n";
  out.files.push_back({"ds_config.json", json.dump(2) + "\n"});
  out.files.push_back({"ds_config.notes.txt", notes});
  return out;
}
