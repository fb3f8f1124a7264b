//===- HfFamilies.h - what the keys of a Hugging Face config mean ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Tables of HfConfig.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_HFFAMILIES_H
#define RECKON_FRONTENDS_SPEC_HFFAMILIES_H

#include <string_view>

namespace reckon::hf {

struct Family {
  std::string_view type;         ///< model_type
  std::string_view architecture; ///< ours
};

inline constexpr Family families[] = {
    {"llama", "llama"},       {"mistral", "llama"},
    {"gpt2", "gpt2"},         {"mixtral", "mixtral"},
    {"qwen2", "qwen2"},       {"qwen3", "qwen3"},
    {"qwen3_moe", "mixtral"}, {"deepseek_v3", "deepseek_v3"},
};

struct Rename {
  std::string_view theirs, ours;
};

/// GPT-2's names; the other families use ours.
inline constexpr Rename gpt2Names[] = {
    {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_inner", "intermediate_size"},
    {"n_positions", "max_position_embeddings"},
    {"activation_function", "hidden_act"},
};

/// Keys of which every value leaves memory and time as they are: identity,
/// tokens, inference, dropout rates, storage, the router's scores.
inline constexpr std::string_view harmless[] = {
    "architectures",
    "auto_map",
    "transformers_version",
    "torch_dtype",
    "dtype",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "sep_token_id",
    "decoder_start_token_id",
    "use_cache",
    "tokenizer_class",
    "task_specific_params",
    "problem_type",
    "id2label",
    "label2id",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "pretraining_tp",
    "quantization_config",
    "torchscript",
    "n_ctx",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "attention_dropout",
    "hidden_dropout",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "gradient_checkpointing",
    "chunk_size_feed_forward",
    "output_router_logits",
    "router_jitter_noise",
    "norm_topk_prob",
    "routed_scaling_factor",
    "n_group",
    "topk_group",
    "aux_loss_alpha",
    "seq_aux",
    "ep_size",
    "scoring_func",
    "topk_method",
    "rope_interleave",
    "max_window_layers",
    "attn_implementation",
    "_attn_implementation",
    "scale_attn_weights",
    "moe_implementation",
    "_name_or_path",
};

/// A key that is understood only with these values; empty means null, false, 0
/// or an empty list.
struct Only {
  std::string_view key;
  std::string_view values; ///< separated by |
  std::string_view why;
};

inline constexpr Only only[] = {
    {"mlp_bias", "", "biases of the feed-forward block are not accounted for"},
    {"use_sliding_window", "", "sliding windows are not accounted for"},
    {"partial_rotary_factor", "1|1.0",
     "partly rotary heads are not accounted for"},
    {"decoder_sparse_step", "1", "layers alternate between experts and none"},
    {"mlp_only_layers", "", "layers alternate between experts and none"},
    {"moe_layer_freq", "1", "layers alternate between experts and none"},
    {"is_encoder_decoder", "", "encoders are not accounted for"},
    {"add_cross_attention", "", "cross attention is not accounted for"},
    {"scale_attn_by_inverse_layer_idx", "",
     "attention of another scale is another model"},
    {"reorder_and_upcast_attn", "", "attention in fp32 is not accounted for"},
    {"vision_config", "", "vision towers are not accounted for"},
    {"text_config", "", "models of several parts are not accounted for"},
    {"audio_config", "", "audio towers are not accounted for"},
};

/// What deepseek_v3 means by its router; another value is another model.
inline constexpr Only routerOnly[] = {
    {"scoring_func", "sigmoid", "the router of deepseek_v3 takes sigmoids"},
    {"topk_method", "noaux_tc",
     "the router of deepseek_v3 balances without an auxiliary loss"},
};

/// Where the defaults of qwen3_moe are not those of our mixtral.
inline constexpr Rename qwen3MoeDefaults[] = {
    {"head_dim", "128"},          {"rms_norm_eps", "1.0e-6"},
    {"rope_theta", "10000.0"},    {"num_local_experts", "128"},
    {"num_experts_per_tok", "8"}, {"moe_intermediate_size", "768"}};

} // namespace reckon::hf

#endif // RECKON_FRONTENDS_SPEC_HFFAMILIES_H
