//===- KeyTableModel.cpp - the keys of the model --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/KeyRows.h"

using namespace reckon;
using namespace reckon::keys;

// The families that a key applies to.
static constexpr std::string_view moe = "mixtral|deepseek_v3";
static constexpr std::string_view grouped = "llama|qwen2|qwen3|mixtral";
static constexpr std::string_view rotary =
    "llama|mixtral|qwen2|qwen3|deepseek_v3";
static constexpr std::string_view mla = "deepseek_v3";

void keys::addModelKeys(Rows &rows) {
  rows.section("model",
               "The model, in the names and with the defaults of a Hugging "
               "Face `config.json`.");
  rows.special(
      "model.hf_config", "", "a path", "",
      "Hugging Face `config.json` to start from, relative to the YAML file "
      "that names it; keys beside it override it.");
  rows.words(Kind::Text, "model.name", "model", "", "",
             "Name for reports and run directories.");
  rows.words(Kind::Word, "model.architecture", "required",
             "llama|gpt2|mixtral|qwen2|qwen3|deepseek_v3", "llama",
             "Family, as `model_type` in `config.json`.");
  rows.number(Kind::Integer, "model.vocab_size", "required", 1, 2 * G - 1,
              "Rows of the embedding.");
  rows.number(Kind::Integer, "model.hidden_size", "required", 1, 16 * M,
              "Width of the residual stream.");
  rows.number(Kind::Integer, "model.intermediate_size",
              "(required; `4 * hidden_size` for gpt2)", 1, 64 * M,
              "Inner width of the dense feed-forward block.");
  rows.number(Kind::Integer, "model.num_hidden_layers", "required", 1, 64 * K,
              "Decoder layers.");
  rows.number(Kind::Integer, "model.num_attention_heads", "required", 1, 64 * K,
              "Query heads.");
  rows.number(Kind::Integer, "model.num_key_value_heads",
              "(`num_attention_heads`)", 1, 64 * K,
              "Key and value heads; query heads share them in equal groups.");
  rows.number(
      Kind::Integer, "model.head_dim",
      "(`hidden_size / num_attention_heads`; 128 for qwen3)", 1, 64 * K,
      "Width of a head; even where the embedding is rotary. Without effect "
      "on MLA.");
  rows.words(Kind::Switch, "model.tie_word_embeddings",
             "(true for gpt2, else false)", "", "false",
             "Use one matrix for embedding and output.");
  rows.number(Kind::Real, "model.rope_theta",
              "(1000000.0 for mixtral, else 10000.0)", 1, 1e12,
              "Base of the rotary frequencies.", rotary);
  rows.section(
      "model.rope_scaling",
      "Rescaling of the rotary frequencies for long contexts. Optional; "
      "`none` means no rescaling.");
  rows.number(Kind::Real, "model.rms_norm_eps",
              "(1.0e-5 for mixtral, else 1.0e-6)", 1e-30, 1,
              "Added to the mean square inside RMSNorm.", rotary);
  rows.number(Kind::Real, "model.initializer_range", "0.02", 0, 1e3,
              "Standard deviation of the initial matrices.");
  rows.number(
      Kind::Integer, "model.max_position_embeddings",
      "(no limit; `sequence_length` for gpt2)", 1, most,
      "Longest sequence that the model is made for; a longer "
      "`sequence_length` is a warning. For gpt2 the rows of the position "
      "embedding, and a longer `sequence_length` is an error.");
  rows.number(Kind::Real, "model.layer_norm_epsilon", "1.0e-5", 1e-30, 1,
              "Added to the variance inside LayerNorm.", "gpt2");
  rows.words(Kind::Word, "model.hidden_act", "(gelu_new for gpt2, else silu)",
             "silu|gelu|gelu_new|gelu_pytorch_tanh|relu", "silu",
             "Activation of the feed-forward block; gated but for gpt2.");
  rows.words(Kind::Switch, "model.attention_bias",
             "(true for qwen2, else false)", "", "false",
             "Biases in the projections to queries, keys and values.", grouped);
  rows.words(Kind::Switch, "model.qk_norm", "(true for qwen3, else false)", "",
             "false", "RMSNorm on the queries and keys of each head.", grouped);
  rows.number(Kind::Integer, "model.q_lora_rank", "1536", 0, 16 * M,
              "Rank of the query compression; 0 for none.", mla);
  rows.number(Kind::Integer, "model.kv_lora_rank", "512", 1, 16 * M,
              "Rank of the key and value compression.", mla);
  rows.number(Kind::Integer, "model.qk_nope_head_dim", "128", 1, 64 * K,
              "Head width without rotary embedding.", mla);
  rows.number(Kind::Integer, "model.qk_rope_head_dim", "64", 1, 64 * K,
              "Head width with rotary embedding; even.", mla);
  rows.number(Kind::Integer, "model.v_head_dim", "128", 1, 64 * K,
              "Width of a value head.", mla);
  rows.number(Kind::Integer, "model.num_local_experts",
              "(8 for mixtral, 256 for deepseek_v3)", 0, 64 * K,
              "Routed experts of a layer; 0 for a dense model.", moe, "0");
  rows.number(Kind::Integer, "model.n_routed_experts", "(`num_local_experts`)",
              0, 64 * K, "The same as `num_local_experts`.", moe, "0");
  rows.number(Kind::Integer, "model.num_experts_per_tok",
              "(2 for mixtral, 8 for deepseek_v3)", 1, 64 * K,
              "Experts that a token goes to.", moe);
  rows.number(Kind::Integer, "model.moe_intermediate_size",
              "(`intermediate_size` for mixtral, 2048 for deepseek_v3)", 1,
              64 * M, "Inner width of an expert.", moe);
  rows.number(Kind::Integer, "model.n_shared_experts",
              "(1 for deepseek_v3, else 0)", 0, 64 * K,
              "Experts that every token goes to.", moe);
  rows.number(Kind::Integer, "model.first_k_dense_replace",
              "(3 for deepseek_v3, else 0)", 0, 64 * K,
              "Leading layers without experts.", moe);
  rows.number(Kind::Real, "model.router_aux_loss_coef",
              "(0.001 for mixtral, else 0)", 0, 1e6,
              "Weight of the load-balancing loss.", moe);
  rows.number(Kind::Real, "model.router_z_loss_coef", "0", 0, 1e6,
              "Weight of the router's z-loss.", moe);
  rows.number(Kind::Integer, "model.num_nextn_predict_layers", "0", 0, 64,
              "Multi-token prediction layers.", mla, "0");

  rows.words(Kind::Word, "model.rope_scaling.rope_type", "required",
             "none|default|llama3|linear|dynamic|yarn|longrope",
             "none|default|llama3",
             "Kind of rescaling; `none` and `default` rescale nothing.");
  rows.number(Kind::Real, "model.rope_scaling.factor",
              "(required by all but longrope)", 1, 1e6,
              "Low frequencies are divided by this.");
  rows.number(Kind::Real, "model.rope_scaling.low_freq_factor",
              "(required by llama3)", 1e-6, 1e6,
              "Wavelengths above original length / this are low frequencies.");
  rows.number(Kind::Real, "model.rope_scaling.high_freq_factor",
              "(required by llama3)", 1e-6, 1e6,
              "Wavelengths below original length / this are kept.");
  rows.number(
      Kind::Integer, "model.rope_scaling.original_max_position_embeddings",
      "(required by llama3)", 1, most, "Context length before rescaling.");
  rows.number(Kind::Real, "model.rope_scaling.beta_fast", "(32)", 0, 1e6,
              "Rotations above which a frequency is kept; only yarn.");
  rows.number(Kind::Real, "model.rope_scaling.beta_slow", "(1)", 0, 1e6,
              "Rotations below which a frequency is divided; only yarn.");
  rows.number(Kind::Real, "model.rope_scaling.mscale", "", 0, 1e6,
              "Factor of the attention's temperature; only yarn.");
  rows.number(Kind::Real, "model.rope_scaling.mscale_all_dim", "", 0, 1e6,
              "The same for dimensions without rotary embedding; only yarn.");
  rows.number(Kind::Real, "model.rope_scaling.attention_factor", "", 0, 1e6,
              "Factor of the attention's logits; only yarn and longrope.");
}
