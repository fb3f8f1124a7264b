//===- MegatronModel.cpp - the model as Megatron-LM arguments -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Megatron.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::exports;
using model::ModelShape;

static void addPositions(const ExportInput &input, const ModelShape &shape,
                         ArgumentList &list, Exported &out) {
  const ModelSpec &m = input.spec.model;
  if (shape.learnedPositions > 0) {
    list.add("--position-embedding-type", "learned_absolute");
    return;
  }
  list.add("--position-embedding-type", "rope");
  if (std::floor(*m.ropeTheta) != *m.ropeTheta)
    out.refuse(m.ropeTheta.loc, "expected a whole number, as Megatron's "
                                "--rotary-base is one, got model.rope_theta " +
                                    number(*m.ropeTheta) + "; round it");
  list.add("--rotary-base", static_cast<int64_t>(*m.ropeTheta));

  const RopeScalingSpec &scaling = m.ropeScaling;
  auto fixed = [&](const char *key, const auto &field, double constant) {
    if (static_cast<double>(*field) != constant)
      out.refuse(field.loc,
                 "expected model.rope_scaling." + std::string(key) + " " +
                     number(constant) + ", which is built into Megatron, got " +
                     number(static_cast<double>(*field)) + "; change it");
  };
  if (*scaling.type == RopeType::Llama3 && !shape.isMla()) {
    list.add("--use-rope-scaling");
    list.add("--rope-scaling-factor", *scaling.factor);
    fixed("low_freq_factor", scaling.lowFreqFactor, 1);
    fixed("high_freq_factor", scaling.highFreqFactor, 4);
    fixed("original_max_position_embeddings",
          scaling.originalMaxPositionEmbeddings, 8192);
  } else if (*scaling.type == RopeType::Linear && !shape.isMla()) {
    if (std::floor(*scaling.factor) != *scaling.factor)
      out.refuse(scaling.factor.loc,
                 "expected a whole number, as Megatron's "
                 "--rotary-seq-len-interpolation-factor is one, got "
                 "model.rope_scaling.factor " +
                     number(*scaling.factor) + "; round it");
    list.add("--rotary-seq-len-interpolation-factor",
             static_cast<int64_t>(*scaling.factor));
  } else if (*scaling.type == RopeType::Yarn && shape.isMla()) {
    list.add("--rope-type", "yarn");
    list.add("--rotary-scaling-factor", *scaling.factor);
    list.add("--mscale", *scaling.mscale > 0 ? *scaling.mscale : 1.0);
    list.add("--mscale-all-dim", *scaling.mscaleAllDim);
    fixed("original_max_position_embeddings",
          scaling.originalMaxPositionEmbeddings, 4096);
    if (*scaling.betaFast > 0)
      fixed("beta_fast", scaling.betaFast, 32);
    if (*scaling.betaSlow > 0)
      fixed("beta_slow", scaling.betaSlow, 1);
    if (*scaling.attentionFactor > 0)
      out.omit("model.rope_scaling.attention_factor",
               "Megatron computes it from the factor and mscale");
  } else if (*scaling.type != RopeType::None) {
    out.refuse(scaling.type.loc,
               std::string("expected a model.rope_scaling that Megatron has "
                           "for this architecture (llama3 and linear; yarn "
                           "for deepseek_v3), got ") +
                   toString(*scaling.type) + "; change rope_type");
  } else if (shape.isMla()) {
    // MLA's default is YaRN; its fused kernel knows nothing else.
    list.add("--rope-type", "rope");
    list.add("--no-rope-fusion");
  }
}

static void addActivation(const ModelSpec &m, const ModelShape &shape,
                          ArgumentList &list, Exported &out) {
  const std::string &act = *m.hiddenAct;
  if (shape.gated) {
    list.add("--swiglu");
    if (!act.empty() && act != "silu")
      out.refuse(m.hiddenAct.loc, "expected model.hidden_act silu, the only "
                                  "gated one of Megatron's flags, got " +
                                      act + "; change it");
    return;
  }
  if (act == "gelu_new" || act == "gelu_pytorch_tanh")
    out.omit("model.hidden_act",
             act + " is the tanh form; Megatron's fused GELU with bias is that "
                   "form too, so no flag is needed");
  else if (act != "gelu")
    out.refuse(m.hiddenAct.loc,
               "expected a GELU in model.hidden_act, got " + act +
                   ", for which Megatron has no flag; change it");
}

static void addExperts(const ExportInput &input, const ModelShape &shape,
                       ArgumentList &list, Exported &out) {
  const ModelSpec &m = input.spec.model;
  list.group("Experts");
  list.add("--num-experts", shape.experts);
  list.add("--moe-router-topk", shape.topK);
  list.add("--moe-ffn-hidden-size", shape.expertFfn);
  if (shape.firstDense > 0)
    list.add("--moe-layer-freq",
             "([0]*" + std::to_string(shape.firstDense) + "+[1]*" +
                 std::to_string(shape.layers - shape.firstDense) + ")");
  if (shape.sharedExperts > 0)
    list.add("--moe-shared-expert-intermediate-size",
             shape.sharedExperts * shape.expertFfn);
  list.add("--moe-grouped-gemm");
  list.add("--moe-token-dispatcher-type", "alltoall");
  if (shape.architecture == "deepseek_v3") {
    list.add("--moe-router-score-function", "sigmoid");
    list.add("--moe-router-enable-expert-bias");
  }
  if (*m.routerAuxLossCoef > 0) {
    list.add("--moe-router-load-balancing-type", "aux_loss");
    list.add("--moe-aux-loss-coeff", *m.routerAuxLossCoef);
  } else {
    list.add("--moe-router-load-balancing-type", "none");
  }
  if (*m.routerZLossCoef > 0)
    list.add("--moe-z-loss-coeff", *m.routerZLossCoef);
  double capacity = *input.spec.parallelism.moeCapacityFactor;
  if (capacity > 0)
    list.add("--moe-expert-capacity-factor", capacity);
  (void)out;
}

void exports::addModel(const ExportInput &input, ArgumentList &list,
                       Exported &out) {
  const ModelSpec &m = input.spec.model;
  ModelShape shape = model::modelShape(input.spec);
  list.group("Model");
  // Only a label; without --wandb-project it has no effect.
  list.add("--wandb-exp-name", *m.name);
  list.add("--num-layers", shape.layers);
  list.add("--hidden-size", shape.hidden);
  list.add("--ffn-hidden-size", shape.ffn);
  list.add("--num-attention-heads", shape.heads);
  if (!shape.isMla()) {
    list.add("--group-query-attention");
    list.add("--num-query-groups", shape.kvHeads);
    list.add("--kv-channels", shape.headDim);
  }
  int64_t positions = shape.learnedPositions;
  if (positions == 0)
    positions = std::max(*m.maxPositionEmbeddings, shape.sequence);
  list.add("--max-position-embeddings", positions);
  addPositions(input, shape, list, out);
  list.add("--normalization", shape.layerNorm ? "LayerNorm" : "RMSNorm");
  list.add("--norm-epsilon",
           shape.layerNorm ? *m.layerNormEpsilon : *m.rmsNormEps);
  addActivation(m, shape, list, out);
  if (!shape.linearBias)
    list.add("--disable-bias-linear");
  if (shape.attentionBias && !shape.linearBias)
    list.add("--add-qkv-bias");
  if (shape.qkNorm)
    list.add("--qk-layernorm");
  if (!shape.tied)
    list.add("--untie-embeddings-and-output-weights");
  list.add("--init-method-std", *m.initializerRange);
  list.add("--attention-dropout", 0.0);
  list.add("--hidden-dropout", 0.0);
  // Rows are padded to this many times the tensor-parallel ranks.
  list.add("--vocab-size", shape.vocab);
  list.add("--make-vocab-size-divisible-by", int64_t{128});
  list.add("--tokenizer-type", "NullTokenizer");
  if (shape.isMla()) {
    list.group("Multi-head latent attention");
    list.add("--multi-latent-attention");
    if (shape.mla.qRank > 0)
      list.add("--q-lora-rank", shape.mla.qRank);
    list.add("--kv-lora-rank", shape.mla.kvRank);
    list.add("--qk-head-dim", shape.mla.nope);
    list.add("--qk-pos-emb-head-dim", shape.mla.rope);
    list.add("--v-head-dim", shape.mla.value);
    // Norms of the compressed queries and keys, which Megatron has under this
    // flag.
    list.add("--qk-layernorm");
  }
  if (shape.isMoe())
    addExperts(input, shape, list, out);
  if (shape.mtpLayers > 0) {
    list.group("Multi-token prediction");
    list.add("--mtp-num-layers", shape.mtpLayers);
  }
}
