//===- ImportModel.cpp - the model in Megatron arguments ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/megatron/Importer.h"

#include "frontends/spec/Scalars.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::megatron;

namespace {

/// expr = term {+ term}; term = atom {* integer}; atom = ( expr ) | [0, 1, ..]
class Pattern {
public:
  explicit Pattern(std::string_view text) {
    for (char c : text)
      if (c != ' ')
        text_ += c;
  }

  std::optional<std::vector<int64_t>> read() {
    std::vector<int64_t> list = sum();
    if (bad_ || at_ != text_.size())
      return std::nullopt;
    return list;
  }

private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (peek() != c)
      return false;
    ++at_;
    return true;
  }
  int64_t integer() {
    size_t end = at_;
    while (end < text_.size() && text_[end] >= '0' && text_[end] <= '9')
      ++end;
    std::optional<int64_t> value =
        parseInteger(std::string_view(text_).substr(at_, end - at_));
    bad_ |= !value || *value > 65536;
    at_ = end;
    return bad_ ? 0 : *value;
  }
  std::vector<int64_t> sum() {
    std::vector<int64_t> list = product();
    while (!bad_ && take('+')) {
      std::vector<int64_t> more = product();
      list.insert(list.end(), more.begin(), more.end());
    }
    return list;
  }
  std::vector<int64_t> product() {
    std::vector<int64_t> list = atom();
    while (!bad_ && take('*')) {
      int64_t times = integer();
      std::vector<int64_t> unit = std::move(list);
      list.clear();
      bad_ |= static_cast<int64_t>(unit.size()) * times > 65536;
      for (int64_t i = 0; i < times && !bad_; ++i)
        list.insert(list.end(), unit.begin(), unit.end());
    }
    return list;
  }
  std::vector<int64_t> atom() {
    std::vector<int64_t> list;
    if (take('(')) {
      list = sum();
      bad_ |= !take(')');
    } else if (take('[')) {
      do
        list.push_back(integer());
      while (!bad_ && take(','));
      bad_ |= !take(']');
    } else {
      bad_ = true;
    }
    return list;
  }

  std::string text_;
  size_t at_ = 0;
  bool bad_ = false;
};

} // namespace

std::optional<std::vector<int64_t>>
megatron::layerPattern(std::string_view text, int64_t layers) {
  if (std::optional<int64_t> every = parseInteger(text)) {
    if (*every < 1 || layers > 65536)
      return std::nullopt;
    std::vector<int64_t> list;
    for (int64_t i = 0; i < layers; ++i)
      list.push_back(i % *every == 0);
    return list;
  }
  return Pattern(text).read();
}

void Importer::architecture() {
  bool experts = args_.integer("--num-experts").value_or(0) > 0;
  bool mla = args_.has("--multi-latent-attention");
  std::string norm = args_.text("--normalization").value_or("LayerNorm");
  bool swiglu = args_.has("--swiglu");
  bool bias = !args_.has("--disable-bias-linear");
  std::string positions =
      args_.text("--position-embedding-type").value_or("learned_absolute");
  if (args_.has("--use-rotary-position-embeddings"))
    positions = "rope";
  bool qkv = args_.has("--add-qkv-bias"), qkNorm = args_.has("--qk-layernorm");
  auto differs = [&](const char *flag, const char *wanted, std::string got) {
    args_.error(flag, "expected " + std::string(wanted) + " as in every " +
                          architecture_ + " of the spec, got " +
                          std::move(got) + "; change it");
  };
  if (norm == "LayerNorm" && !swiglu && !experts && !mla) {
    architecture_ = "gpt2";
    if (positions != "learned_absolute")
      differs("--position-embedding-type", "learned_absolute", positions);
    if (!bias)
      differs("--disable-bias-linear", "biases on all linear layers",
              "--disable-bias-linear");
    if (qkNorm)
      differs("--qk-layernorm", "no norms of queries and keys",
              "--qk-layernorm");
    put("model.layer_norm_epsilon",
        args_.real("--norm-epsilon").value_or(1e-5));
    put("model.hidden_act",
        args_.has("--no-bias-gelu-fusion") ? "gelu" : "gelu_new");
    return;
  }
  architecture_ = mla       ? "deepseek_v3"
                  : experts ? "mixtral"
                  : qkNorm  ? "qwen3"
                  : qkv     ? "qwen2"
                            : "llama";
  if (norm != "RMSNorm")
    differs("--normalization", "--normalization RMSNorm", norm);
  if (!swiglu)
    differs("--swiglu", "--swiglu", "no such flag");
  if (bias)
    differs("--disable-bias-linear", "--disable-bias-linear", "no such flag");
  if (positions != "rope")
    differs("--position-embedding-type", "--position-embedding-type rope",
            positions);
  put("model.rms_norm_eps", args_.real("--norm-epsilon").value_or(1e-5));
  put("model.hidden_act", "silu");
  if (mla && qkv)
    differs("--add-qkv-bias", "no biases", "--add-qkv-bias");
  if (mla) {
    if (!qkNorm)
      note("MLA is planned with its norms of compressed queries and keys "
           "(--qk-layernorm)");
    return;
  }
  put("model.attention_bias", qkv);
  put("model.qk_norm", qkNorm);
}

void Importer::positions() {
  int64_t longest = required("--max-position-embeddings");
  put("model.max_position_embeddings", longest);
  if (architecture_ == "gpt2")
    return;
  put("model.rope_theta",
      static_cast<double>(args_.integer("--rotary-base").value_or(10000)));
  if (args_.real("--rotary-percent").value_or(1) != 1)
    args_.error("--rotary-percent", "expected --rotary-percent 1, as the "
                                    "planner rotates whole heads, got less; "
                                    "remove it");
  const std::string section = "model.rope_scaling.";
  bool yarn = architecture_ == "deepseek_v3" &&
              args_.text("--rope-type").value_or("yarn") == "yarn";
  std::optional<int64_t> linear =
      args_.integer("--rotary-seq-len-interpolation-factor");
  if (args_.has("--use-rope-scaling")) {
    put(section + "rope_type", "llama3");
    put(section + "factor", args_.real("--rope-scaling-factor").value_or(8));
    // Built into Megatron.
    put(section + "low_freq_factor", 1.0);
    put(section + "high_freq_factor", 4.0);
    put(section + "original_max_position_embeddings", int64_t{8192});
  } else if (yarn) {
    put(section + "rope_type", "yarn");
    put(section + "factor", args_.real("--rotary-scaling-factor").value_or(1));
    put(section + "original_max_position_embeddings", int64_t{4096});
    put(section + "beta_fast", 32.0);
    put(section + "beta_slow", 1.0);
    put(section + "mscale", args_.real("--mscale").value_or(1));
    put(section + "mscale_all_dim", args_.real("--mscale-all-dim").value_or(0));
  } else if (linear) {
    put(section + "rope_type", "linear");
    put(section + "factor", static_cast<double>(*linear));
  }
  args_.has("--no-rope-fusion");
}

void Importer::attention() {
  int64_t hidden = required("--hidden-size");
  int64_t heads = required("--num-attention-heads");
  put("model.num_attention_heads", heads);
  if (architecture_ != "deepseek_v3") {
    bool grouped = args_.has("--group-query-attention");
    int64_t groups = args_.integer("--num-query-groups").value_or(1);
    put("model.num_key_value_heads", grouped ? groups : heads);
    int64_t width = args_.integer("--kv-channels").value_or(0);
    if (width == 0 && heads > 0 && hidden % heads != 0)
      args_.error("--num-attention-heads",
                  "expected --num-attention-heads to divide --hidden-size " +
                      std::to_string(hidden) + ", got " +
                      std::to_string(heads) + "; give --kv-channels");
    if (width == 0 && heads > 0)
      width = hidden / heads;
    put("model.head_dim", width);
    return;
  }
  put("model.num_key_value_heads", heads);
  put("model.q_lora_rank", args_.integer("--q-lora-rank").value_or(0));
  put("model.kv_lora_rank", args_.integer("--kv-lora-rank").value_or(32));
  put("model.qk_nope_head_dim", args_.integer("--qk-head-dim").value_or(128));
  put("model.qk_rope_head_dim",
      args_.integer("--qk-pos-emb-head-dim").value_or(64));
  put("model.v_head_dim", args_.integer("--v-head-dim").value_or(128));
}

void Importer::experts() {
  int64_t count = args_.integer("--num-experts").value_or(0);
  if (architecture_ != "deepseek_v3" && count == 0)
    return;
  put("model.num_local_experts", count);
  if (architecture_ == "deepseek_v3")
    put("model.num_nextn_predict_layers",
        args_.integer("--mtp-num-layers").value_or(0));
  else if (args_.integer("--mtp-num-layers").value_or(0) > 0)
    args_.error("--mtp-num-layers",
                "expected multi-token prediction only with "
                "--multi-latent-attention, as in the spec, got it with " +
                    architecture_ + "; remove it");
  if (count == 0)
    return;
  int64_t width = args_.integer("--moe-ffn-hidden-size").value_or(0);
  if (width == 0)
    width = args_.integer("--ffn-hidden-size").value_or(0);
  put("model.moe_intermediate_size", width);
  put("model.num_experts_per_tok",
      args_.integer("--moe-router-topk").value_or(2));
  int64_t shared =
      args_.integer("--moe-shared-expert-intermediate-size").value_or(0);
  if (width > 0 && shared % width != 0)
    args_.error("--moe-shared-expert-intermediate-size",
                "expected a multiple of --moe-ffn-hidden-size " +
                    std::to_string(width) +
                    ", as the spec counts shared "
                    "experts, got " +
                    std::to_string(shared) + "; change it");
  put("model.n_shared_experts", width > 0 ? shared / width : 0);
  std::string frequency = args_.text("--moe-layer-freq").value_or("1");
  std::optional<std::vector<int64_t>> pattern =
      layerPattern(frequency, layers_);
  int64_t dense = 0;
  if (pattern)
    dense = std::find(pattern->begin(), pattern->end(), 1) - pattern->begin();
  if (!pattern || static_cast<int64_t>(pattern->size()) != layers_ ||
      std::count(pattern->begin() + dense, pattern->end(), 1) !=
          layers_ - dense)
    args_.error("--moe-layer-freq",
                "expected dense layers only before all expert layers, " +
                    std::to_string(layers_) + " together, got " + frequency +
                    "; write it as ([0]*a+[1]*b)");
  put("model.first_k_dense_replace", dense);
  put("model.router_aux_loss_coef",
      args_.text("--moe-router-load-balancing-type").value_or("aux_loss") ==
              "none"
          ? 0.0
          : args_.real("--moe-aux-loss-coeff").value_or(0));
  put("model.router_z_loss_coef", args_.real("--moe-z-loss-coeff").value_or(0));
  for (const char *flag :
       {"--moe-grouped-gemm", "--moe-token-dispatcher-type",
        "--moe-router-score-function", "--moe-router-enable-expert-bias"})
    args_.has(flag);
}

void Importer::model() {
  layers_ = required("--num-layers");
  if (std::optional<std::string> name = args_.text("--wandb-exp-name"))
    put("model.name", *name);
  architecture();
  put("model.architecture", architecture_);
  put("model.num_hidden_layers", layers_);
  int64_t hidden = required("--hidden-size");
  put("model.hidden_size", hidden);
  // As Megatron's own default.
  int64_t ffn = args_.has("--swiglu") ? hidden * 8 / 3 / 64 * 64 : 4 * hidden;
  put("model.intermediate_size",
      args_.integer("--ffn-hidden-size").value_or(ffn));
  attention();
  positions();
  experts();
  put("model.tie_word_embeddings",
      !args_.has("--untie-embeddings-and-output-weights"));
  put("model.initializer_range",
      args_.real("--init-method-std").value_or(0.02));
  if (args_.has("--vocab-size"))
    put("model.vocab_size", required("--vocab-size"));
  else if (std::optional<int64_t> rows = args_.integer("--padded-vocab-size")) {
    put("model.vocab_size", *rows);
    note("--padded-vocab-size is planned as the vocabulary");
  } else if (gpt2Tokenizer())
    put("model.vocab_size", int64_t{50257}); // of the one vocabulary it reads
  for (const char *flag : {"--attention-dropout", "--hidden-dropout"})
    if (args_.real(flag).value_or(0.1) != 0)
      note(std::string(flag) + " is not planned for; the spec has no dropout");
  args_.has("--tokenizer-type");
  if (args_.integer("--make-vocab-size-divisible-by").value_or(128) != 128)
    note("--make-vocab-size-divisible-by is planned as 128");
}
