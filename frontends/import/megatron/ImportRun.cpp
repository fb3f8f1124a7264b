//===- ImportRun.cpp - training, ranks and devices ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/megatron/Importer.h"

#include "frontends/spec/Layout.h"

#include <cmath>

using namespace reckon;
using namespace reckon::megatron;

void Importer::batch() {
  // A file that only describes a model leaves these to another one.
  if (args_.has("--seq-length"))
    put("training.sequence_length", required("--seq-length"));
  int64_t micro = args_.integer("--micro-batch-size").value_or(0);
  if (args_.has("--micro-batch-size"))
    put("parallelism.micro_batch_size", micro);
  std::optional<int64_t> global = args_.integer("--global-batch-size");
  if (!global && micro > 0 && args_.nodes && args_.devicesPerNode) {
    // Megatron's default: one micro-batch a replica.
    int64_t ranks =
        args_.integer("--tensor-model-parallel-size").value_or(1) *
        args_.integer("--pipeline-model-parallel-size").value_or(1) *
        args_.integer("--context-parallel-size").value_or(1);
    if (ranks > 0)
      global = micro * (*args_.nodes * *args_.devicesPerNode / ranks);
  }
  batch_ = global.value_or(0);
  if (global)
    put("training.global_batch_size", *global);
  std::optional<int64_t> steps = args_.integer("--train-iters");
  if (std::optional<int64_t> samples = args_.integer("--train-samples");
      samples && batch_ > 0)
    steps = *samples / batch_;
  if (steps)
    put("training.train_steps", *steps);
}

void Importer::learningRate() {
  const std::string section = "training.lr_schedule.";
  std::string style = args_.text("--lr-decay-style").value_or("linear");
  if (style == "WSD") {
    put(section + "type", "wsd");
    if (std::optional<int64_t> decay = args_.integer("--lr-wsd-decay-iters"))
      put(section + "decay_steps", *decay);
    if (args_.text("--lr-wsd-decay-style").value_or("exponential") != "linear")
      note("--lr-wsd-decay-style is taken as linear");
  } else if (style == "constant" || style == "linear" || style == "cosine") {
    put(section + "type", style);
  } else {
    args_.error("--lr-decay-style", "expected constant, linear, cosine or WSD "
                                    "behind --lr-decay-style, got " +
                                        style + "; use one of them");
  }
  int64_t warmup = args_.integer("--lr-warmup-iters").value_or(0);
  std::optional<int64_t> steps = args_.integer("--train-iters");
  if (std::optional<int64_t> samples = args_.integer("--lr-warmup-samples");
      samples && batch_ > 0)
    warmup = *samples / batch_;
  if (std::optional<double> part = args_.real("--lr-warmup-fraction");
      part && steps)
    warmup = std::llround(*part * static_cast<double>(*steps));
  put(section + "warmup_steps", warmup);
  put(section + "min_lr", args_.real("--min-lr").value_or(0));
  if (std::optional<int64_t> decay = args_.integer("--lr-decay-iters");
      decay && steps && *decay != *steps)
    note("--lr-decay-iters is taken as --train-iters");
}

void Importer::precision() {
  std::string precision = "fp32";
  if (args_.has("--bf16"))
    precision = "bf16";
  if (args_.has("--fp16")) {
    precision = "bf16";
    note("--fp16 is planned as bf16: the same bytes and speed, no loss scale");
  }
  if (args_.has("--fp8-format"))
    precision = "fp8";
  put("training.precision", precision);
  put("training.grad_reduce_dtype",
      args_.has("--grad-reduce-in-bf16") ? "bf16" : "fp32");
  args_.has("--accumulate-allreduce-grads-in-fp32");
}

void Importer::training() {
  batch();
  learningRate();
  precision();
  std::string optimizer = args_.text("--optimizer").value_or("adam");
  if (optimizer != "adam")
    args_.error("--optimizer", "expected --optimizer adam, got " + optimizer +
                                   ", which the planner has no states for; "
                                   "change it");
  const std::string section = "training.optimizer.";
  put(section + "name", "adamw");
  if (std::optional<double> lr = args_.real("--lr"))
    put(section + "lr", *lr);
  put(section + "betas",
      std::vector<double>{args_.real("--adam-beta1").value_or(0.9),
                          args_.real("--adam-beta2").value_or(0.999)});
  put(section + "eps", args_.real("--adam-eps").value_or(1e-8));
  put(section + "weight_decay", args_.real("--weight-decay").value_or(0.01));
  put(section + "clip_grad", args_.real("--clip-grad").value_or(1));
  for (const char *flag : {"--data-path", "--save"})
    if (args_.has(flag) && !args_.knownText(flag))
      note(std::string(flag) + " is left out, as only a run knows its value");
  put("training.seed", args_.integer("--seed").value_or(1234));
  if (std::optional<std::string> path = args_.knownText("--data-path")) {
    put("training.data.format", "megatron");
    put("training.data.path", *path, true);
  }
  if (std::optional<std::string> save = args_.knownText("--save")) {
    put("training.checkpoint.dir", *save, true);
    if (std::optional<int64_t> interval = args_.integer("--save-interval"))
      put("training.checkpoint.interval", *interval);
    put("training.checkpoint.async", args_.has("--async-save"));
  }
}

void Importer::recompute() {
  std::string granularity =
      args_.text("--recompute-granularity").value_or("none");
  if (args_.has("--recompute-activations"))
    granularity = "selective";
  int64_t layers = args_.integer("--recompute-num-layers").value_or(1);
  std::string method = args_.text("--recompute-method").value_or("uniform");
  if (granularity == "full" && method == "block") {
    put("parallelism.recompute.layers", layers);
    return;
  }
  if (granularity == "full" && layers != 1)
    note("--recompute-num-layers " + std::to_string(layers) +
         " is planned as 1: every layer's input is kept");
  const Argument *modules = args_.find("--recompute-modules");
  if (granularity == "selective" && modules)
    for (const Word &module : modules->values)
      if (module.text != "core_attn")
        args_.error("--recompute-modules",
                    "expected --recompute-modules core_attn, which is the "
                    "planner's selective recompute, got " +
                        module.text + "; remove it");
  put("parallelism.recompute", granularity);
}

void Importer::cluster(const std::string &accelerator) {
  if (!accelerator.empty())
    put("cluster.accelerator", accelerator);
  if (args_.nodes)
    put("cluster.nodes", *args_.nodes);
  if (args_.devicesPerNode)
    put("cluster.gpus_per_node", *args_.devicesPerNode);
  std::string missing;
  if (!at("model").find("vocab_size"))
    missing += " model.vocab_size";
  if (!args_.has("--seq-length"))
    missing += " training.sequence_length";
  if (!at("training").find("global_batch_size"))
    missing += " training.global_batch_size";
  if (accelerator.empty())
    missing += " cluster.accelerator";
  if (!args_.nodes)
    missing += " cluster.nodes";
  if (!args_.devicesPerNode)
    missing += " cluster.gpus_per_node";
  if (!missing.empty())
    note("not in the arguments, to be given beside this file:" + missing);
}
