//===- KeyTable.cpp - the rows --------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Bounds are sanity limits: far above what anybody trains, low enough that
// every product of two of them stays within 63 bits. Check.cpp guards the
// longer products.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Keys.h"

namespace reckon {
namespace {

constexpr double K = 1024.0, M = K * K, G = K * M;
constexpr double most = 9007199254740992.0; // 2^53: exact as a double

constexpr std::string_view moe = "mixtral|deepseek_v3";
constexpr std::string_view grouped = "llama|qwen2|qwen3|mixtral";
constexpr std::string_view rotary = "llama|mixtral|qwen2|qwen3|deepseek_v3";
constexpr std::string_view mla = "deepseek_v3";

using Kind = KeyKind;

std::vector<KeyRow> makeTable() {
  std::vector<KeyRow> t;
  auto section = [&](std::string_view path, std::string_view doc) {
    KeyRow row;
    row.path = path, row.kind = Kind::Section, row.doc = doc;
    t.push_back(row);
  };
  auto number = [&](Kind kind, std::string_view path, std::string_view fallback,
                    double low, double high, std::string_view doc,
                    std::string_view applies = "",
                    std::string_view compiles = "") {
    KeyRow row;
    row.path = path, row.kind = kind, row.fallback = fallback;
    row.low = low, row.high = high, row.doc = doc;
    row.applies = applies, row.compiles = compiles;
    t.push_back(row);
  };
  auto words = [&](Kind kind, std::string_view path, std::string_view fallback,
                   std::string_view all, std::string_view compiles,
                   std::string_view doc, std::string_view applies = "") {
    KeyRow row;
    row.path = path, row.kind = kind, row.fallback = fallback;
    row.words = all, row.compiles = compiles, row.doc = doc;
    row.applies = applies;
    t.push_back(row);
  };
  auto special = [&](std::string_view path, std::string_view fallback,
                     std::string_view type, std::string_view compiles,
                     std::string_view doc) {
    KeyRow row;
    row.path = path, row.kind = Kind::Special, row.fallback = fallback;
    row.type = type, row.compiles = compiles, row.doc = doc;
    t.push_back(row);
  };

  section("model", "The model, in the names and with the defaults of a Hugging "
                   "Face `config.json`.");
  special("model.hf_config", "", "a path", "",
          "Hugging Face `config.json` to start from, relative to the YAML file "
          "that names it; keys beside it override it.");
  words(Kind::Text, "model.name", "model", "", "",
        "Name for reports and run directories.");
  words(Kind::Word, "model.architecture", "required",
        "llama|gpt2|mixtral|qwen2|qwen3|deepseek_v3", "llama",
        "Family, as `model_type` in `config.json`.");
  number(Kind::Integer, "model.vocab_size", "required", 1, 2 * G - 1,
         "Rows of the embedding.");
  number(Kind::Integer, "model.hidden_size", "required", 1, 16 * M,
         "Width of the residual stream.");
  number(Kind::Integer, "model.intermediate_size",
         "(required; `4 * hidden_size` for gpt2)", 1, 64 * M,
         "Inner width of the dense feed-forward block.");
  number(Kind::Integer, "model.num_hidden_layers", "required", 1, 64 * K,
         "Decoder layers.");
  number(Kind::Integer, "model.num_attention_heads", "required", 1, 64 * K,
         "Query heads.");
  number(Kind::Integer, "model.num_key_value_heads", "(`num_attention_heads`)",
         1, 64 * K,
         "Key and value heads; query heads share them in equal groups.");
  number(Kind::Integer, "model.head_dim",
         "(`hidden_size / num_attention_heads`; 128 for qwen3)", 1, 64 * K,
         "Width of a head; even where the embedding is rotary. Without effect "
         "on MLA.");
  words(Kind::Switch, "model.tie_word_embeddings",
        "(true for gpt2, else false)", "", "false",
        "Use one matrix for embedding and output.");
  number(Kind::Real, "model.rope_theta",
         "(1000000.0 for mixtral, else 10000.0)", 1, 1e12,
         "Base of the rotary frequencies.", rotary);
  section("model.rope_scaling",
          "Rescaling of the rotary frequencies for long contexts. Optional; "
          "`none` means no rescaling.");
  number(Kind::Real, "model.rms_norm_eps", "(1.0e-5 for mixtral, else 1.0e-6)",
         1e-30, 1, "Added to the mean square inside RMSNorm.", rotary);
  number(Kind::Real, "model.initializer_range", "0.02", 0, 1e3,
         "Standard deviation of the initial matrices.");
  number(Kind::Integer, "model.max_position_embeddings",
         "(no limit; `sequence_length` for gpt2)", 1, most,
         "Longest sequence that the model is made for; a longer "
         "`sequence_length` is a warning. For gpt2 the rows of the position "
         "embedding, and a longer `sequence_length` is an error.");
  number(Kind::Real, "model.layer_norm_epsilon", "1.0e-5", 1e-30, 1,
         "Added to the variance inside LayerNorm.", "gpt2");
  words(Kind::Word, "model.hidden_act", "(gelu_new for gpt2, else silu)",
        "silu|gelu|gelu_new|gelu_pytorch_tanh|relu", "silu",
        "Activation of the feed-forward block; gated but for gpt2.");
  words(Kind::Switch, "model.attention_bias", "(true for qwen2, else false)",
        "", "false", "Biases in the projections to queries, keys and values.",
        grouped);
  words(Kind::Switch, "model.qk_norm", "(true for qwen3, else false)", "",
        "false", "RMSNorm on the queries and keys of each head.", grouped);
  number(Kind::Integer, "model.q_lora_rank", "1536", 0, 16 * M,
         "Rank of the query compression; 0 for none.", mla);
  number(Kind::Integer, "model.kv_lora_rank", "512", 1, 16 * M,
         "Rank of the key and value compression.", mla);
  number(Kind::Integer, "model.qk_nope_head_dim", "128", 1, 64 * K,
         "Head width without rotary embedding.", mla);
  number(Kind::Integer, "model.qk_rope_head_dim", "64", 1, 64 * K,
         "Head width with rotary embedding; even.", mla);
  number(Kind::Integer, "model.v_head_dim", "128", 1, 64 * K,
         "Width of a value head.", mla);
  number(Kind::Integer, "model.num_local_experts",
         "(8 for mixtral, 256 for deepseek_v3)", 0, 64 * K,
         "Routed experts of a layer; 0 for a dense model.", moe, "0");
  number(Kind::Integer, "model.n_routed_experts", "(`num_local_experts`)", 0,
         64 * K, "The same as `num_local_experts`.", moe, "0");
  number(Kind::Integer, "model.num_experts_per_tok",
         "(2 for mixtral, 8 for deepseek_v3)", 1, 64 * K,
         "Experts that a token goes to.", moe);
  number(Kind::Integer, "model.moe_intermediate_size",
         "(`intermediate_size` for mixtral, 2048 for deepseek_v3)", 1, 64 * M,
         "Inner width of an expert.", moe);
  number(Kind::Integer, "model.n_shared_experts", "(1 for deepseek_v3, else 0)",
         0, 64 * K, "Experts that every token goes to.", moe);
  number(Kind::Integer, "model.first_k_dense_replace",
         "(3 for deepseek_v3, else 0)", 0, 64 * K,
         "Leading layers without experts.", moe);
  number(Kind::Real, "model.router_aux_loss_coef",
         "(0.001 for mixtral, else 0)", 0, 1e6,
         "Weight of the load-balancing loss.", moe);
  number(Kind::Real, "model.router_z_loss_coef", "0", 0, 1e6,
         "Weight of the router's z-loss.", moe);
  number(Kind::Integer, "model.num_nextn_predict_layers", "0", 0, 64,
         "Multi-token prediction layers.", mla, "0");

  words(Kind::Word, "model.rope_scaling.rope_type", "required",
        "none|default|llama3|linear|dynamic|yarn|longrope",
        "none|default|llama3",
        "Kind of rescaling; `none` and `default` rescale nothing.");
  number(Kind::Real, "model.rope_scaling.factor",
         "(required by all but longrope)", 1, 1e6,
         "Low frequencies are divided by this.");
  number(Kind::Real, "model.rope_scaling.low_freq_factor",
         "(required by llama3)", 1e-6, 1e6,
         "Wavelengths above original length / this are low frequencies.");
  number(Kind::Real, "model.rope_scaling.high_freq_factor",
         "(required by llama3)", 1e-6, 1e6,
         "Wavelengths below original length / this are kept.");
  number(Kind::Integer, "model.rope_scaling.original_max_position_embeddings",
         "(required by llama3)", 1, most, "Context length before rescaling.");
  number(Kind::Real, "model.rope_scaling.beta_fast", "(32)", 0, 1e6,
         "Rotations above which a frequency is kept; only yarn.");
  number(Kind::Real, "model.rope_scaling.beta_slow", "(1)", 0, 1e6,
         "Rotations below which a frequency is divided; only yarn.");
  number(Kind::Real, "model.rope_scaling.mscale", "", 0, 1e6,
         "Factor of the attention's temperature; only yarn.");
  number(Kind::Real, "model.rope_scaling.mscale_all_dim", "", 0, 1e6,
         "The same for dimensions without rotary embedding; only yarn.");
  number(Kind::Real, "model.rope_scaling.attention_factor", "", 0, 1e6,
         "Factor of the attention's logits; only yarn and longrope.");

  section("cluster", "The machines.");
  special("cluster.accelerator", "required",
          "a catalogue name or a map of figures", "",
          "One of " // the list is checked against the catalogue by a test
          "a100-sxm-40gb, a100-sxm-80gb, h100-sxm, h100-sxm-96gb-hbm2e, "
          "h100-sxm-94gb-hbm2e, h200-sxm, h800-sxm, b200-sxm, b300-sxm, "
          "gb200-nvl72, gb300-nvl72, cpu; or figures of your own. `cpu` is one "
          "process of this program with nominal figures.");
  number(Kind::Integer, "cluster.nodes", "required", 1, 1 * M, "Machines.");
  number(Kind::Integer, "cluster.gpus_per_node", "required", 1, 1 * K,
         "Devices of a machine; processes of a machine for `cpu`.");
  number(Kind::Real, "cluster.inter_node_bandwidth_gbps", "(by accelerator)",
         1e-3, 1e6, "Network of one GPU, one direction, in Gbit/s.");
  number(Kind::Real, "cluster.memory_reserve_gib", "(by accelerator)", 0, 1e6,
         "Memory of a device for driver, communication library and others; 2 "
         "on GPUs, 0 on `cpu`.");
  number(Kind::Real, "cluster.host_memory_gib", "(unknown)", 0, 1e9,
         "Memory of a machine.");
  number(Kind::Real, "cluster.gpu_mtbf_hours", "50000", 1e-3, 1e12,
         "Mean time between failures of one device.");
  number(Kind::Real, "cluster.price_per_gpu_hour", "(2.5, 0 for `cpu`)", 0, 1e9,
         "Money for one device hour.");
  special("cluster.calibration", "", "a path", "",
          "Measured efficiencies, as `reckon calibrate` writes them; relative "
          "to the YAML file that names it.");
  words(Kind::Text, "cluster.efficiency_profile", "reckon", "", "",
        "Whose software to predict; an unknown name means global constants, "
        "with a warning.");
  words(Kind::Text, "cluster.bootstrap_interface", "", "", "",
        "Network interface that ranks meet on.");
  section("cluster.resilience",
          "Failures and checkpoints, for `reckon goodput` and the objective "
          "`time_to_train`. Optional.");
  section("cluster.slurm", "Copied into `launch.sbatch`. Optional.");

  auto figure = [&](std::string_view path, std::string_view fallback,
                    double low, double high, std::string_view doc) {
    number(Kind::Real, path, fallback, low, high, doc);
  };
  words(Kind::Text, "cluster.accelerator.chip", "custom", "", "",
        "Name for reports.");
  figure("cluster.accelerator.bf16_dense_tflops", "required", 1e-6, 1e9,
         "Dense bf16 peak, TFLOP/s.");
  figure("cluster.accelerator.fp8_dense_tflops", "0", 0, 1e9,
         "Dense fp8 peak, TFLOP/s; 0 for none.");
  figure("cluster.accelerator.fp32_tflops", "(bf16 peak / 16)", 1e-6, 1e9,
         "fp32 peak outside tensor cores, TFLOP/s.");
  figure("cluster.accelerator.mem_gb", "required", 1e-3, 1e6, "Memory, GiB.");
  figure("cluster.accelerator.mem_bw_gbs", "required", 1e-3, 1e9,
         "Memory bandwidth, GB/s.");
  figure("cluster.accelerator.intra_node_bw_gbs", "required", 1e-3, 1e9,
         "Link inside a node, GB/s per direction.");
  number(Kind::Integer, "cluster.accelerator.intra_node_size",
         "(`gpus_per_node`)", 1, 64 * K, "Devices that share that link.");
  figure("cluster.accelerator.inter_node_bw_gbs_per_gpu", "50", 1e-3, 1e9,
         "Network of one device, GB/s per direction.");

  number(Kind::Real, "cluster.resilience.checkpoint_bandwidth_gbs",
         "(2 a machine)", 1e-6, 1e9,
         "What all machines together write to and read from the storage of "
         "checkpoints, GB/s.");
  number(Kind::Real, "cluster.resilience.copy_bandwidth_gbs", "20", 1e-6, 1e6,
         "Copies from one device to its host's memory, GB/s.");
  number(Kind::Real, "cluster.resilience.checkpoint_overhead_s", "0.5", 0, 1e9,
         "Seconds of every save that nothing hides.");
  number(Kind::Real, "cluster.resilience.checkpoint_stall_s",
         "(from the plan's bytes)", 0, 1e9,
         "Seconds that training stands still for a checkpoint.");
  number(Kind::Real, "cluster.resilience.detect_s", "60", 0, 1e9,
         "Seconds from a failure until it is noticed.");
  number(Kind::Real, "cluster.resilience.restart_s", "30", 0, 1e9,
         "Seconds until the processes are up again.");
  number(Kind::Real, "cluster.resilience.load_s",
         "(bytes / `checkpoint_bandwidth_gbs`)", 0, 1e9,
         "Seconds until a checkpoint is loaded.");

  for (std::string_view path :
       {"cluster.slurm.partition", "cluster.slurm.account", "cluster.slurm.qos",
        "cluster.slurm.time"})
    words(Kind::Text, path, "", "", "", "The `#SBATCH` option of that name.");
  words(Kind::Texts, "cluster.slurm.setup", "", "", "",
        "Shell lines before `srun`, such as `module load`.");
  words(Kind::Texts, "cluster.slurm.srun_args", "", "", "",
        "More arguments of `srun`.");
  words(Kind::Texts, "cluster.slurm.extra", "", "", "",
        "More `#SBATCH` options.");

  section("training", "What is trained, and how.");
  number(Kind::Integer, "training.sequence_length", "required", 1, 1 * G,
         "Tokens of a sequence.");
  number(Kind::Integer, "training.global_batch_size", "required", 1, 1 * G,
         "Sequences of a step, over all ranks.");
  number(Kind::Integer, "training.train_steps", "1000", 1, 1e12,
         "Optimizer steps; the horizon of the learning-rate schedule.");
  words(Kind::Word, "training.precision", "bf16", "fp32|bf16|fp8", "fp32|bf16",
        "bf16 keeps activations and parameters in bf16; sums, gradients, main "
        "weights and optimizer states are fp32.");
  words(Kind::Word, "training.grad_reduce_dtype", "fp32", "fp32|bf16", "fp32",
        "Type in which gradients are accumulated and reduced.");
  section("training.optimizer", "The optimizer. Optional.");
  section("training.lr_schedule", "The learning rate over time. Optional.");
  number(Kind::Integer, "training.seed", "1234", 0, most,
         "Seed of initial weights and sample order.");
  section("training.data", "The corpus; needed only to run.");
  section("training.checkpoint",
          "Checkpoints. Read and kept; this version writes none.");
  words(Kind::Word, "training.optimizer.name", "adamw", "adamw", "",
        "Kind of optimizer.");
  number(Kind::Real, "training.optimizer.lr", "3.0e-4", 0, 1e6,
         "Peak learning rate.");
  special("training.optimizer.betas", "[0.9, 0.95]",
          "a list of two numbers from 0 to below 1", "",
          "Decay of the two moments.");
  number(Kind::Real, "training.optimizer.eps", "1.0e-8", 1e-38, 1,
         "Added to the root of the second moment.");
  number(Kind::Real, "training.optimizer.weight_decay", "0.1", 0, 1e3,
         "Decoupled weight decay, on matrices.");
  number(Kind::Real, "training.optimizer.clip_grad", "1.0", 0, 1e30,
         "Largest global gradient norm; 0 turns clipping off.");
  words(Kind::Word, "training.lr_schedule.type", "constant",
        "constant|linear|cosine|wsd", "",
        "Course after the warm-up; formulas below.");
  number(Kind::Integer, "training.lr_schedule.warmup_steps", "0", 0, 1e12,
         "Steps of linear rise from 0 to `lr`.");
  number(Kind::Integer, "training.lr_schedule.decay_steps",
         "(a tenth of `train_steps`)", 1, 1e12,
         "Last steps in which `wsd` falls to `min_lr`.");
  number(Kind::Real, "training.lr_schedule.min_lr", "0", 0, 1e6,
         "Learning rate at the end.");
  words(Kind::Word, "training.data.format", "text", "text|megatron", "text",
        "A text file, or Megatron's `.bin` and `.idx`.");
  words(Kind::Text, "training.data.path", "required", "", "",
        "The corpus; relative to the YAML file that names it.");
  special("training.data.tokenizer", "byte", "byte or a path", "byte",
          "`byte` has exactly 256 ids.");
  words(Kind::Text, "training.checkpoint.dir", "<run-dir>/checkpoints", "", "",
        "Where checkpoints go.");
  special("training.checkpoint.interval", "auto",
          "auto, none, or a number of steps", "auto|none",
          "Steps between checkpoints.");
  number(Kind::Integer, "training.checkpoint.keep", "3", 1, 1 * M,
         "Checkpoints to keep.");
  words(Kind::Switch, "training.checkpoint.async", "true", "", "",
        "Write while training goes on.");

  section("parallelism",
          "How the work is split. Each key: `auto` (the planner chooses), one "
          "value (fixed), or a list to choose from.");
  number(Kind::Degrees, "parallelism.tensor_parallel", "auto", 1, 64 * K,
         "Ranks that share each matrix.");
  words(Kind::Switches, "parallelism.sequence_parallel", "auto", "",
        "true|false",
        "Split norms and residuals along the sequence inside a tensor "
        "group.");
  number(Kind::Degrees, "parallelism.context_parallel", "auto", 1, 64 * K,
         "Ranks that share each sequence; twice the number divides "
         "`sequence_length`.",
         "", "1");
  words(Kind::Words, "parallelism.context_parallel_method", "auto",
        "none|ring|all_gather|all_to_all", "",
        "Without effect while `context_parallel` is 1.");
  number(Kind::Degrees, "parallelism.pipeline_parallel", "auto", 1, 64 * K,
         "Pipeline stages.");
  number(Kind::Degrees, "parallelism.virtual_pipeline", "auto", 1, 64 * K,
         "Chunks of layers per pipeline rank.", "", "1");
  words(Kind::Words, "parallelism.pipeline_schedule", "auto",
        "gpipe|1f1b|interleaved_1f1b|bfs|zb_h1|zb_h2|zbv|dualpipe_v|"
        "synthesized|csv:FILE",
        "1f1b|gpipe",
        "Order of forwards and backwards. `auto` chooses among the named ones; "
        "`synthesized` is made by the solver; `csv:FILE` is read, relative to "
        "the YAML file that names it.");
  special("parallelism.pipeline_layout", "auto",
          "auto, a list of layers per stage, or a Megatron layout string", "",
          "Layers of each virtual stage in the order of the forward, such as "
          "[3, 5]; the embedding is with the first, the loss with the last, "
          "and these two may have 0 layers. Of the string, what maps to that: "
          "E, t, m, L, |, *N and groups, such as \"Ettt|(tt|)*2tL\".");
  number(Kind::Degrees, "parallelism.expert_parallel", "auto", 1, 64 * K,
         "Ranks that share the experts, among the tensor · context · data "
         "ranks of a pipeline rank.",
         "", "1");
  number(Kind::Degrees, "parallelism.expert_tensor_parallel", "auto", 1, 64 * K,
         "Ranks that share each expert's matrices; 1 while "
         "`expert_parallel` is fixed and this is not given.",
         "", "1");
  number(Kind::Degrees, "parallelism.data_parallel", "auto", 1, 1 * G,
         "Replicas; derived as world / (tensor · context · pipeline).");
  number(Kind::Degrees, "parallelism.zero_stage", "auto", 0, 3,
         "What replicas share: 1 optimizer state, 2 gradients, 3 parameters.",
         "", "0|1");
  number(Kind::Degrees, "parallelism.micro_batch_size", "auto", 1, 1 * G,
         "Sequences of one forward on one replica.");
  words(Kind::Words, "parallelism.recompute", "auto",
        "none|selective|full|{layers: n}", "none|full",
        "Activations that the backward computes again: none, the attention's "
        "inner ones, all of each layer, or all of n layers of each virtual "
        "stage.");
  special("parallelism.moe_capacity_factor", "auto",
          "auto, none, or a number of at least 1", "auto|none",
          "Bound of an expert's buffer over the even share; `none` holds the "
          "worst case, `auto` expects some imbalance.");
  words(Kind::Word, "parallelism.representation", "reckon",
        "reckon|megatron|deepspeed|torchtitan", "reckon",
        "Whose memory and traffic to account for.");

  section("constraints", "Limits that a plan must keep. Optional.");
  special("constraints.memory_limit_gib", "auto", "auto or a number of GiB", "",
          "Limit of a rank's memory without the reserve; `auto` is the "
          "accelerator's memory minus the reserve.");
  number(Kind::Real, "constraints.max_bubble", "0.10", 0, 1e9,
         "Largest idle time / ideal time of the schedule; may exceed 1.");
  special("constraints.host_memory_limit_gib", "auto",
          "auto or a number of GiB", "", "Limit of a machine's memory.");

  section("search", "What the planner looks for. Optional.");
  words(Kind::Word, "search.objective", "step_time",
        "step_time|time_to_train|cost|memory", "", "What to make smallest.");
  words(Kind::Word, "search.space", "(compilable on `cpu`, else all)",
        "all|compilable", "compilable",
        "Which choices are considered: all that can be accounted for, or those "
        "that `reckon compile` can lower.");
  number(Kind::Real, "search.time_limit_s", "60", 1e-3, 1e9,
         "Seconds of search.");
  number(Kind::Integer, "search.top", "5", 1, 1e6, "Candidates to report.");
  return t;
}

} // namespace

const std::vector<KeyRow> &keyTable() {
  static const std::vector<KeyRow> table = makeTable();
  return table;
}

} // namespace reckon
