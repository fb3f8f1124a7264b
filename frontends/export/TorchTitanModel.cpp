//===- TorchTitanModel.cpp - the model of a torchtitan configuration ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/TorchTitan.h"

using namespace reckon;
using namespace reckon::exports;
using model::ModelShape;

namespace {

std::string integer(const char *name, int64_t value) {
  return std::string(name) + "=" + std::to_string(value);
}

std::string real(const char *name, double value) {
  return std::string(name) + "=" + number(value);
}

/// torchtitan's name of the model, or empty after an error.
std::string titanModel(const ExportInput &input, const ModelShape &shape,
                       Exported &out) {
  const ModelSpec &m = input.spec.model;
  auto refuse = [&](const SourceLoc &loc, const std::string &what) {
    out.refuse(loc.line || !loc.file.empty() ? loc : m.architecture.loc,
               "expected a model that torchtitan 0.3.0 has (llama, qwen3 or "
               "deepseek_v3 of the spec), got " +
                   what + "; change it or export to megatron");
    return std::string();
  };
  bool known = shape.architecture == "llama" || shape.architecture == "qwen3" ||
               shape.architecture == "deepseek_v3";
  if (!known)
    return refuse(m.architecture.loc,
                  "model.architecture " + shape.architecture);
  if (!m.hiddenAct->empty() && *m.hiddenAct != "silu")
    return refuse(m.hiddenAct.loc, "model.hidden_act " + *m.hiddenAct);
  if (shape.attentionBias)
    return refuse(m.attentionBias.loc, "model.attention_bias true");
  if (shape.architecture == "llama") {
    if (shape.qkNorm)
      return refuse(m.qkNorm.loc, "model.qk_norm true with llama");
    return "llama3";
  }
  if (shape.architecture == "qwen3") {
    if (!shape.qkNorm)
      return refuse(m.qkNorm.loc, "model.qk_norm false with qwen3");
    return "qwen3";
  }
  if (shape.isMoe() && shape.sharedExperts == 0)
    return refuse(m.nSharedExperts.loc, "model.n_shared_experts 0");
  if (shape.tied)
    return refuse(m.tieWordEmbeddings.loc,
                  "model.tie_word_embeddings true with deepseek_v3");
  return "deepseek_v3";
}

std::string rope(const ExportInput &input, const ModelShape &shape,
                 Exported &out) {
  const ModelSpec &m = input.spec.model;
  const RopeScalingSpec &scaling = m.ropeScaling;
  bool qwen = shape.architecture == "qwen3";
  int64_t longest = std::max(*m.maxPositionEmbeddings, shape.sequence);
  std::string text = qwen ? "CosSinRoPE.Config(" : "ComplexRoPE.Config(";
  text += integer("dim", shape.isMla() ? shape.mla.rope : shape.headDim) +
          ", " + integer("max_seq_len", longest) + ", " +
          real("theta", *m.ropeTheta);
  if (*scaling.type == RopeType::Llama3 && !qwen)
    text += ",\n        scaling=\"llama\", " +
            real("scaling_factor", *scaling.factor) + ", " +
            real("low_freq_factor", *scaling.lowFreqFactor) + ", " +
            real("high_freq_factor", *scaling.highFreqFactor) + ",\n        " +
            integer("original_max_position_embeddings",
                    *scaling.originalMaxPositionEmbeddings);
  else if (*scaling.type == RopeType::Yarn)
    text += ",\n        scaling=\"yarn\", " +
            real("rope_factor", *scaling.factor) + ", " +
            real("beta_fast", *scaling.betaFast > 0 ? *scaling.betaFast : 32) +
            ", " +
            real("beta_slow", *scaling.betaSlow > 0 ? *scaling.betaSlow : 1) +
            ",\n        " +
            integer("original_seq_len", *scaling.originalMaxPositionEmbeddings);
  else if (*scaling.type != RopeType::None)
    out.refuse(scaling.type.loc,
               std::string("expected a model.rope_scaling that torchtitan has "
                           "for this architecture (llama3 for llama, yarn), "
                           "got ") +
                   toString(*scaling.type) + "; change rope_type");
  return text + ")";
}

/// Initialisers and the imports that all models need.
std::string preamble(const ExportInput &input) {
  return "from functools import partial\n\n"
         "import torch.nn as nn\n\n"
         "from torchtitan.components.loss import CrossEntropyLoss\n"
         "from torchtitan.components.optimizer import (\n"
         "    LRSchedulersContainer,\n"
         "    default_adamw,\n"
         ")\n"
         "from torchtitan.config import (\n"
         "    CompileConfig,\n"
         "    DebugConfig,\n"
         "    ParallelismConfig,\n"
         "    TrainingConfig,\n"
         ")\n"
         "from torchtitan.distributed.activation_checkpoint import (\n"
         "    FullAC,\n"
         "    SelectiveAC,\n"
         ")\n"
         "from torchtitan.distributed.pipeline_parallel import pipeline_llm\n"
         "from torchtitan.hf_datasets.text_datasets import "
         "HuggingFaceTextDataLoader\n"
         "from torchtitan.models.common import Embedding, Linear\n"
         "from torchtitan.models.common.nn_modules import RMSNorm\n"
         "from torchtitan.models.common.param_init import skip_param_init\n"
         "from torchtitan.protocols.model_spec import ModelSpec\n"
         "from torchtitan.trainer import Trainer\n"
         "@IMPORTS@\n"
         "MATRIX = {\n"
         "    \"weight\": partial(nn.init.trunc_normal_, std=" +
         number(*input.spec.model.initializerRange) +
         "),\n"
         "    \"bias\": nn.init.zeros_,\n"
         "}\n"
         "NORM = {\"weight\": nn.init.ones_}\n"
         "EMBEDDING = {\"weight\": MATRIX[\"weight\"]}\n";
}

std::string gqaLayers(const ModelShape &shape, const std::string &block) {
  bool qwen = shape.architecture == "qwen3";
  std::string text =
      "    rope = @ROPE@\n"
      "    def layer():\n"
      "        return " +
      block +
      ".Config(\n"
      "            attention_norm=norm(), ffn_norm=norm(),\n"
      "            attention=make_gqa_config(\n"
      "                dim=dim, " +
      integer("n_heads", shape.heads) + ", " +
      integer("n_kv_heads", shape.kvHeads) + ", " +
      integer("head_dim", shape.headDim) +
      ",\n"
      "                wqkv_param_init=MATRIX, wo_param_init=MATRIX,\n"
      "                inner_attention=get_attention_config(\"flex\"),\n"
      "                fuse_qkv=True, rope=rope";
  if (qwen)
    text += ", qk_norm=norm(" + std::to_string(shape.headDim) + ")";
  text += "),\n"
          "            feed_forward=make_ffn_config(\n"
          "                dim=dim, " +
          integer("hidden_dim", shape.ffn) +
          ",\n"
          "                w1_param_init=MATRIX, w2w3_param_init=MATRIX))\n\n"
          "    layers = [layer() for _ in range(" +
          std::to_string(shape.layers) + ")]\n";
  return text;
}

std::string mlaLayers(const ModelShape &shape) {
  int64_t dense = shape.isMoe() ? shape.firstDense : shape.layers;
  // A model without experts still has to name sizes of them.
  int64_t experts = std::max<int64_t>(1, shape.experts);
  int64_t width = shape.isMoe() ? shape.expertFfn : shape.ffn;
  std::string text =
      "    experts = {name: MATRIX[\"weight\"] for name in\n"
      "               (\"w1_EFD\", \"w2_EDF\", \"w3_EFD\")}\n"
      "    layers = build_mla_moe_layers(\n"
      "        " +
      integer("n_layers", shape.layers) + ", " +
      integer("n_dense_layers", dense) + ", dim=dim, " +
      integer("n_heads", shape.heads) + ",\n        " +
      integer("q_lora_rank", shape.mla.qRank) + ", " +
      integer("kv_lora_rank", shape.mla.kvRank) + ", " +
      integer("qk_nope_head_dim", shape.mla.nope) + ",\n        " +
      integer("qk_rope_head_dim", shape.mla.rope) + ", " +
      integer("v_head_dim", shape.mla.value) + ", mscale=@MSCALE@,\n        " +
      integer("dense_hidden_dim", shape.ffn) + ", " +
      integer("moe_hidden_dim", width) + ", " +
      integer("num_experts", experts) + ",\n        " +
      integer("num_shared_experts", std::max<int64_t>(1, shape.sharedExperts)) +
      ", " + integer("router_top_k", std::max<int64_t>(1, shape.topK)) +
      ", router_score_func=\"sigmoid\",\n"
      "        router_route_norm=True, attn_backend=\"flex\",\n"
      "        moe_comm_backend=\"standard\", "
      "non_blocking_capacity_factor=None,\n"
      "        linear_init=MATRIX, norm_init=NORM, "
      "depth_init=lambda layer: MATRIX,\n"
      "        depth_experts_init=lambda layer: experts,\n"
      "        rope=@ROPE@)\n";
  if (shape.mtpLayers > 0)
    text += "    last = layers[-1]\n"
            "    mtp_layers = [\n"
            "        MTPTransformerBlock.Config(\n"
            "            attention=copy.deepcopy(last.attention),\n"
            "            feed_forward=copy.deepcopy(last.feed_forward),\n"
            "            moe=copy.deepcopy(last.moe),\n"
            "            attention_norm=norm(), ffn_norm=norm(), "
            "enorm=norm(), hnorm=norm(),\n"
            "            eh_proj=Linear.Config(in_features=2 * dim, "
            "out_features=dim),\n"
            "            mtp_norm=norm())\n"
            "        for _ in range(" +
            std::to_string(shape.mtpLayers) + ")]\n";
  return text;
}

void replace(std::string &text, const std::string &mark,
             const std::string &value) {
  size_t at = text.find(mark);
  if (at != std::string::npos)
    text.replace(at, mark.size(), value);
}

} // namespace

std::string exports::torchTitanModel(const ExportInput &input, Exported &out) {
  const ModelSpec &m = input.spec.model;
  ModelShape shape = model::modelShape(input.spec);
  std::string name = titanModel(input, shape, out);
  if (name.empty())
    return "";
  bool mla = name == "deepseek_v3", qwen = name == "qwen3";
  std::string model = mla    ? "DeepSeekV3Model"
                      : qwen ? "Qwen3Model"
                             : "Llama3Model";
  std::string adapter = mla    ? "DeepSeekV3StateDictAdapter"
                        : qwen ? "Qwen3StateDictAdapter"
                               : "Llama3StateDictAdapter";
  std::string parallelize = mla    ? "parallelize_deepseekv3"
                            : qwen ? "parallelize_qwen3"
                                   : "parallelize_llama";
  std::string block = qwen ? "Qwen3TransformerBlock" : "Llama3TransformerBlock";
  std::string package = "torchtitan.models." + name;

  std::string imports;
  if (mla)
    imports = "from torchtitan.components.optimizer import "
              "register_moe_load_balancing_hook\n"
              "from torchtitan.models.common import ComplexRoPE\n"
              "from " +
              package + " import build_mla_moe_layers\n";
  else
    imports = "from torchtitan.models.common import " +
              std::string(qwen ? "CosSinRoPE" : "ComplexRoPE") +
              "\n"
              "from torchtitan.models.common.config_utils import (\n"
              "    get_attention_config,\n"
              "    make_ffn_config,\n"
              "    make_gqa_config,\n"
              ")\n";
  imports += "from " + package + ".model import " + model +
             (mla ? "" : ", " + block) + "\n";
  if (shape.mtpLayers > 0)
    imports += "from " + package + ".mtp import MTPTransformerBlock\n";
  imports += "from " + package + ".parallelize import " + parallelize + "\n";
  imports += "from " + package + ".state_dict_adapter import " + adapter + "\n";

  std::string text = preamble(input);
  replace(text, "@IMPORTS@\n", imports + "\n");
  if (shape.mtpLayers > 0)
    text = "import copy\n" + text;
  text += "\n\ndef model_spec():\n"
          "    dim, vocabulary = " +
          std::to_string(shape.hidden) + ", " + std::to_string(shape.vocab) +
          "\n\n"
          "    def norm(width=dim):\n"
          "        return RMSNorm.Config(normalized_shape=width, "
          "param_init=NORM)\n\n";
  text += mla ? mlaLayers(shape) : gqaLayers(shape, block);
  replace(text, "@ROPE@", rope(input, shape, out));
  double mscale = *m.ropeScaling.mscale > 0 ? *m.ropeScaling.mscale : 1.0;
  replace(text, "@MSCALE@", number(mscale));
  text += "    model = " + model +
          ".Config(\n"
          "        dim=dim, vocab_size=vocabulary, layers=layers, norm=norm()";
  if (shape.tied)
    text += ",\n        enable_weight_tying=True";
  if (shape.mtpLayers > 0)
    text += ",\n        mtp_layers=mtp_layers";
  text +=
      ",\n        tok_embeddings=Embedding.Config(\n"
      "            num_embeddings=vocabulary, embedding_dim=dim,\n"
      "            param_init=" +
      std::string(shape.tied ? "{\"weight\": skip_param_init}" : "EMBEDDING") +
      "),\n"
      "        lm_head=Linear.Config(\n"
      "            in_features=dim, out_features=vocabulary, "
      "param_init=MATRIX))\n"
      "    for _, config, _, _ in model.traverse(RMSNorm.Config):\n"
      "        config.eps = " +
      number(*m.rmsNormEps) +
      "\n"
      "    return ModelSpec(\n"
      "        name=\"" +
      name +
      "\", flavor=\"reckon\", model=model,\n"
      "        parallelize_fn=" +
      parallelize +
      ", pipelining_fn=pipeline_llm,\n"
      "        post_optimizer_build_fn=" +
      (mla || qwen ? (mla ? "register_moe_load_balancing_hook" : "None")
                   : "None") +
      ",\n        state_dict_adapter=" + adapter + ")\n";
  if (*m.routerAuxLossCoef > 0 && shape.isMoe())
    out.omit("model.router_aux_loss_coef",
             "torchtitan balances experts by a bias (load_balance_coeff)");
  if (*m.routerZLossCoef > 0 && shape.isMoe())
    out.omit("model.router_z_loss_coef", "torchtitan has no such loss");
  return text;
}
