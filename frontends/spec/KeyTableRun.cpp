//===- KeyTableRun.cpp - the keys of training and its split ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/KeyRows.h"

using namespace reckon;
using namespace reckon::keys;

void keys::addTrainingKeys(Rows &rows) {
  rows.section("training", "What is trained, and how.");
  rows.number(Kind::Integer, "training.sequence_length", "required", 1, 1 * G,
              "Tokens of a sequence.");
  rows.number(Kind::Integer, "training.global_batch_size", "required", 1, 1 * G,
              "Sequences of a step, over all ranks.");
  rows.number(Kind::Integer, "training.train_steps", "1000", 1, 1e12,
              "Optimizer steps; the horizon of the learning-rate schedule.");
  rows.words(
      Kind::Word, "training.precision", "bf16", "fp32|bf16|fp8", "",
      "bf16 keeps activations and parameters in bf16; sums, gradients, main "
      "weights and optimizer states are fp32. fp8 is bf16 whose decoder layers "
      "multiply in fp8.");
  rows.words(Kind::Word, "training.grad_reduce_dtype", "fp32", "fp32|bf16",
             "fp32", "Type in which gradients are accumulated and reduced.");
  rows.section("training.optimizer", "The optimizer. Optional.");
  rows.section("training.lr_schedule",
               "The learning rate over time. Optional.");
  rows.number(Kind::Integer, "training.seed", "1234", 0, most,
              "Seed of initial weights and sample order.");
  rows.section("training.data", "The corpus; needed only to run.");
  rows.section("training.checkpoint",
               "Checkpoints. Read and kept; this version writes none.");
  rows.words(Kind::Word, "training.optimizer.name", "adamw", "adamw", "",
             "Kind of optimizer.");
  rows.number(Kind::Real, "training.optimizer.lr", "3.0e-4", 0, 1e6,
              "Peak learning rate.");
  rows.special("training.optimizer.betas", "[0.9, 0.95]",
               "a list of two numbers from 0 to below 1", "",
               "Decay of the two moments.");
  rows.number(Kind::Real, "training.optimizer.eps", "1.0e-8", 1e-38, 1,
              "Added to the root of the second moment.");
  rows.number(Kind::Real, "training.optimizer.weight_decay", "0.1", 0, 1e3,
              "Decoupled weight decay, on matrices.");
  rows.number(Kind::Real, "training.optimizer.clip_grad", "1.0", 0, 1e30,
              "Largest global gradient norm; 0 turns clipping off.");
  rows.words(Kind::Word, "training.lr_schedule.type", "constant",
             "constant|linear|cosine|wsd", "",
             "Course after the warm-up; formulas below.");
  rows.number(Kind::Integer, "training.lr_schedule.warmup_steps", "0", 0, 1e12,
              "Steps of linear rise from 0 to `lr`.");
  rows.number(Kind::Integer, "training.lr_schedule.decay_steps",
              "(a tenth of `train_steps`)", 1, 1e12,
              "Last steps in which `wsd` falls to `min_lr`.");
  rows.number(Kind::Real, "training.lr_schedule.min_lr", "0", 0, 1e6,
              "Learning rate at the end.");
  rows.words(Kind::Word, "training.data.format", "text", "text|megatron",
             "text", "A text file, or Megatron's `.bin` and `.idx`.");
  rows.words(Kind::Text, "training.data.path", "required", "", "",
             "The corpus; relative to the YAML file that names it.");
  rows.special("training.data.tokenizer", "byte", "byte or a path", "byte",
               "`byte` has exactly 256 ids.");
  rows.words(Kind::Text, "training.checkpoint.dir", "<run-dir>/checkpoints", "",
             "", "Where checkpoints go.");
  rows.special("training.checkpoint.interval", "auto",
               "auto, none, or a number of steps", "auto|none",
               "Steps between checkpoints.");
  rows.number(Kind::Integer, "training.checkpoint.keep", "3", 1, 1 * M,
              "Checkpoints to keep.");
  rows.words(Kind::Switch, "training.checkpoint.async", "true", "", "",
             "Write while training goes on.");
}

void keys::addParallelismKeys(Rows &rows) {
  rows.section(
      "parallelism",
      "How the work is split. Each key: `auto` (the planner chooses), one "
      "value (fixed), or a list to choose from.");
  rows.number(Kind::Degrees, "parallelism.tensor_parallel", "auto", 1, 64 * K,
              "Ranks that share each matrix.");
  rows.words(Kind::Switches, "parallelism.sequence_parallel", "auto", "",
             "true|false",
             "Split norms and residuals along the sequence inside a tensor "
             "group.");
  rows.number(Kind::Degrees, "parallelism.context_parallel", "auto", 1, 64 * K,
              "Ranks that share each sequence; twice the number divides "
              "`sequence_length`.",
              "", "1");
  rows.words(Kind::Words, "parallelism.context_parallel_method", "auto",
             "none|ring|all_gather|all_to_all", "",
             "Without effect while `context_parallel` is 1.");
  rows.number(Kind::Degrees, "parallelism.pipeline_parallel", "auto", 1, 64 * K,
              "Pipeline stages.");
  rows.number(Kind::Degrees, "parallelism.virtual_pipeline", "auto", 1, 64 * K,
              "Chunks of layers per pipeline rank.", "", "1");
  rows.words(
      Kind::Words, "parallelism.pipeline_schedule", "auto",
      "gpipe|1f1b|interleaved_1f1b|bfs|zb_h1|zb_h2|zbv|dualpipe_v|"
      "synthesized|csv:FILE",
      "1f1b|gpipe",
      "Order of forwards and backwards. `auto` chooses among the named ones; "
      "`synthesized` is made by the solver; `csv:FILE` is read, relative to "
      "the YAML file that names it.");
  rows.special(
      "parallelism.pipeline_layout", "auto",
      "auto, a list of layers per stage, or a Megatron layout string", "",
      "Layers of each virtual stage in the order of the forward, such as "
      "[3, 5]; the embedding is with the first, the loss with the last, "
      "and these two may have 0 layers. Of the string, what maps to that: "
      "E, t, m, L, |, *N and groups, such as \"Ettt|(tt|)*2tL\".");
  rows.number(Kind::Degrees, "parallelism.expert_parallel", "auto", 1, 64 * K,
              "Ranks that share the experts, among the tensor · context · data "
              "ranks of a pipeline rank.",
              "", "1");
  rows.number(Kind::Degrees, "parallelism.expert_tensor_parallel", "auto", 1,
              64 * K,
              "Ranks that share each expert's matrices; 1 while "
              "`expert_parallel` is fixed and this is not given.",
              "", "1");
  rows.number(Kind::Degrees, "parallelism.data_parallel", "auto", 1, 1 * G,
              "Replicas; derived as world / (tensor · context · pipeline).");
  rows.number(
      Kind::Degrees, "parallelism.zero_stage", "auto", 0, 3,
      "What replicas share: 1 optimizer state, 2 gradients, 3 parameters.", "",
      "0|1");
  rows.number(Kind::Degrees, "parallelism.micro_batch_size", "auto", 1, 1 * G,
              "Sequences of one forward on one replica.");
  rows.words(
      Kind::Words, "parallelism.recompute", "auto",
      "none|selective|full|{layers: n}", "none|full",
      "Activations that the backward computes again: none, the attention's "
      "inner ones, all of each layer, or all of n layers of each virtual "
      "stage.");
  rows.special(
      "parallelism.moe_capacity_factor", "auto",
      "auto, none, or a number of at least 1", "auto|none",
      "Bound of an expert's buffer over the even share; `none` holds the "
      "worst case, `auto` expects some imbalance.");
  rows.words(Kind::Word, "parallelism.representation", "reckon",
             "reckon|megatron|deepspeed|torchtitan", "reckon",
             "Whose memory and traffic to account for.");
}

void keys::addPlanningKeys(Rows &rows) {
  rows.section("constraints", "Limits that a plan must keep. Optional.");
  rows.special("constraints.memory_limit_gib", "auto",
               "auto or a number of GiB", "",
               "Limit of a rank's memory without the reserve; `auto` is the "
               "accelerator's memory minus the reserve.");
  rows.number(Kind::Real, "constraints.max_bubble", "0.10", 0, 1e9,
              "Largest idle time / ideal time of the schedule; may exceed 1.");
  rows.special("constraints.host_memory_limit_gib", "auto",
               "auto or a number of GiB", "", "Limit of a machine's memory.");

  rows.section("search", "What the planner looks for. Optional.");
  rows.words(Kind::Word, "search.objective", "step_time",
             "step_time|time_to_train|cost|memory", "",
             "What to make smallest.");
  rows.words(
      Kind::Word, "search.space", "(compilable on `cpu`, else all)",
      "all|compilable", "compilable",
      "Which choices are considered: all that can be accounted for, or those "
      "that `reckon compile` can lower.");
  rows.number(Kind::Real, "search.time_limit_s", "60", 1e-3, 1e9,
              "Seconds of search.");
  rows.number(Kind::Integer, "search.top", "5", 1, 1e6,
              "Candidates to report.");
}
