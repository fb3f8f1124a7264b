//===- ReadModel.cpp - the section model ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"
#include "frontends/spec/Suggest.h"

namespace reckon {
namespace {

/// Whether a value of a key of another architecture asks for anything.
bool asksForSomething(const Node &node) {
  return !isNeutral(node) &&
         !(node.isScalar() && (node.text == "0" || node.text == "false"));
}

/// Keys that belong to other architectures: checked for their type, then only
/// warned about, since a shared file may serve several models.
void readForeignKeys(Reader &reader, const std::string &architecture) {
  for (const KeyRow *row : keysBelow("model")) {
    const Entry *entry = reader.find(row->path);
    if (!entry || row->applies.empty())
      continue;
    bool applies = false;
    for (const std::string &name : splitWords(row->applies))
      applies |= name == architecture;
    if (applies)
      continue; // read by its own line in readModel
    bool usable = isNeutral(entry->value);
    if (!usable && row->kind == KeyKind::Integer)
      usable = reader.readInteger(entry->value, *row).has_value();
    else if (!usable && row->kind == KeyKind::Real)
      usable = reader.readReal(entry->value, *row).has_value();
    if (usable && asksForSomething(entry->value))
      reader.warn(entry->loc, std::string(row->path) + " does not apply to " +
                                  architecture + " and is ignored");
  }
}

/// A type that rescales nothing reads as None.
RopeType ropeType(const std::string &word) {
  for (RopeType type : {RopeType::Llama3, RopeType::Linear, RopeType::Dynamic,
                        RopeType::Yarn, RopeType::LongRope})
    if (word == toString(type))
      return type;
  return RopeType::None;
}

RopeScalingSpec readRopeScaling(Reader &reader) {
  const std::string section = "model.rope_scaling";
  RopeScalingSpec spec;
  const Entry *entry = reader.find(section);
  spec.type.loc = reader.locate(section);
  if (!entry || !entry->value.isMap())
    return spec;
  Field<std::string> type = reader.word(section + ".rope_type");
  spec.type.given = true;
  spec.type.loc = type.loc;
  spec.type.value = ropeType(*type);
  spec.factor = reader.real(section + ".factor");
  spec.lowFreqFactor = reader.real(section + ".low_freq_factor");
  spec.highFreqFactor = reader.real(section + ".high_freq_factor");
  spec.originalMaxPositionEmbeddings =
      reader.integer(section + ".original_max_position_embeddings");
  spec.betaFast = reader.real(section + ".beta_fast");
  spec.betaSlow = reader.real(section + ".beta_slow");
  spec.mscale = reader.real(section + ".mscale");
  spec.mscaleAllDim = reader.real(section + ".mscale_all_dim");
  spec.attentionFactor = reader.real(section + ".attention_factor");
  bool llama3 = *spec.type == RopeType::Llama3;
  bool needsFactor =
      *spec.type != RopeType::None && *spec.type != RopeType::LongRope;
  for (const KeyRow *row : keysBelow(section))
    if (!reader.find(row->path) &&
        ((llama3 && row->fallback == "(required by llama3)") ||
         (needsFactor && row->name() == "factor")))
      reader.missing(*row);
  double low = *spec.lowFreqFactor, high = *spec.highFreqFactor;
  if (llama3 && low > 0 && high > 0 && high <= low)
    reader.error(spec.highFreqFactor.loc,
                 "expected model.rope_scaling.high_freq_factor above "
                 "low_freq_factor " +
                     formatNumber(low) + ", got " + formatNumber(high) +
                     "; Llama 3 uses 4 and 1");
  return spec;
}

template <typename T> void fallback(Field<T> &field, T value) {
  if (!field.given)
    field.value = std::move(value);
}

/// Keys of one family; the fields of the others stay 0 and false.
void readFamily(Reader &reader, ModelSpec &model) {
  const std::string &family = *model.architecture;
  bool deepseek = family == "deepseek_v3", mixtral = family == "mixtral";
  if (family == "gpt2")
    model.layerNormEpsilon = reader.real("model.layer_norm_epsilon");
  if (family == "llama" || family == "qwen2" || family == "qwen3" || mixtral) {
    model.attentionBias = reader.flag("model.attention_bias");
    model.qkNorm = reader.flag("model.qk_norm");
    fallback(model.attentionBias, family == "qwen2");
    fallback(model.qkNorm, family == "qwen3");
  }
  if (deepseek) {
    model.qLoraRank = reader.integer("model.q_lora_rank");
    model.kvLoraRank = reader.integer("model.kv_lora_rank");
    model.qkNopeHeadDim = reader.integer("model.qk_nope_head_dim");
    model.qkRopeHeadDim = reader.integer("model.qk_rope_head_dim");
    model.vHeadDim = reader.integer("model.v_head_dim");
    model.numNextnPredictLayers =
        reader.integer("model.num_nextn_predict_layers");
  }
  if (!deepseek && !mixtral)
    return;
  model.numExperts = reader.integer("model.num_local_experts");
  Field<int64_t> routed = reader.integer("model.n_routed_experts");
  if (routed.given && model.numExperts.given && *routed != *model.numExperts)
    reader.error(routed.loc,
                 "expected model.n_routed_experts to equal num_local_experts " +
                     std::to_string(*model.numExperts) + ", got " +
                     std::to_string(*routed) +
                     "; they are two names of one number, remove one");
  if (routed.given)
    model.numExperts = routed;
  fallback<int64_t>(model.numExperts, deepseek ? 256 : 8);
  model.numExpertsPerTok = reader.integer("model.num_experts_per_tok");
  fallback<int64_t>(model.numExpertsPerTok, deepseek ? 8 : 2);
  model.moeIntermediateSize = reader.integer("model.moe_intermediate_size");
  fallback<int64_t>(model.moeIntermediateSize,
                    deepseek ? 2048 : *model.intermediateSize);
  model.nSharedExperts = reader.integer("model.n_shared_experts");
  fallback<int64_t>(model.nSharedExperts, deepseek ? 1 : 0);
  model.firstKDenseReplace = reader.integer("model.first_k_dense_replace");
  fallback<int64_t>(model.firstKDenseReplace, deepseek ? 3 : 0);
  model.routerAuxLossCoef = reader.real("model.router_aux_loss_coef");
  fallback(model.routerAuxLossCoef, mixtral ? 0.001 : 0.0);
  model.routerZLossCoef = reader.real("model.router_z_loss_coef");
  if (*model.numExperts > 0 && *model.numExpertsPerTok > *model.numExperts)
    reader.error(model.numExpertsPerTok.loc,
                 "expected model.num_experts_per_tok of at most the " +
                     std::to_string(*model.numExperts) + " experts, got " +
                     std::to_string(*model.numExpertsPerTok) +
                     "; change one of them");
}

void readHeadDim(Reader &reader, ModelSpec &model) {
  model.headDim = reader.integer("model.head_dim");
  if (*model.architecture == "deepseek_v3") {
    // What a query and a key have; head_dim of the file says something else.
    if (*model.qkNopeHeadDim > 0 && *model.qkRopeHeadDim > 0)
      model.headDim.value = *model.qkNopeHeadDim + *model.qkRopeHeadDim;
    model.headDim.given = false;
    model.headDim.loc = model.qkNopeHeadDim.loc;
    return;
  }
  int64_t hidden = *model.hiddenSize, heads = *model.numAttentionHeads;
  if (model.headDim.given)
    return;
  if (*model.architecture == "qwen3") {
    model.headDim.value = 128;
    return;
  }
  if (hidden <= 0 || heads <= 0)
    return;
  model.headDim.loc = model.numAttentionHeads.loc;
  if (hidden % heads == 0)
    model.headDim.value = hidden / heads;
  else
    reader.error(model.numAttentionHeads.loc,
                 "expected model.num_attention_heads to divide hidden_size " +
                     std::to_string(hidden) + ", got " + std::to_string(heads) +
                     "; change one of them or give head_dim");
}

} // namespace

ModelSpec readModel(Reader &reader) {
  ModelSpec model;
  model.loc = reader.locate("model");
  model.name = reader.text("model.name");
  model.architecture = reader.word("model.architecture");
  model.vocabSize = reader.integer("model.vocab_size");
  model.hiddenSize = reader.integer("model.hidden_size");
  model.intermediateSize = reader.integer("model.intermediate_size");
  bool gpt2 = *model.architecture == "gpt2";
  bool mixtral = *model.architecture == "mixtral";
  if (!model.intermediateSize.given && gpt2)
    model.intermediateSize.value = 4 * *model.hiddenSize;
  else if (!model.intermediateSize.given)
    reader.missing(*findKey("model.intermediate_size"));
  model.numHiddenLayers = reader.integer("model.num_hidden_layers");
  model.numAttentionHeads = reader.integer("model.num_attention_heads");
  model.numKeyValueHeads = reader.integer("model.num_key_value_heads");
  model.tieWordEmbeddings = reader.flag("model.tie_word_embeddings");
  fallback(model.tieWordEmbeddings, gpt2);
  model.ropeTheta = reader.real("model.rope_theta");
  fallback(model.ropeTheta, mixtral ? 1e6 : 1e4);
  model.ropeScaling = readRopeScaling(reader);
  model.rmsNormEps = reader.real("model.rms_norm_eps");
  fallback(model.rmsNormEps, mixtral ? 1e-5 : 1e-6);
  model.initializerRange = reader.real("model.initializer_range");
  model.maxPositionEmbeddings = reader.integer("model.max_position_embeddings");
  model.hiddenAct = reader.word("model.hidden_act");
  fallback<std::string>(model.hiddenAct, gpt2 ? "gelu_new" : "silu");
  if (!model.architecture->empty()) {
    readFamily(reader, model);
    readForeignKeys(reader, *model.architecture);
  }
  readHeadDim(reader, model);
  if (!model.numKeyValueHeads.given) {
    model.numKeyValueHeads.value = *model.numAttentionHeads;
    model.numKeyValueHeads.loc = model.numAttentionHeads.loc;
  }
  return model;
}

} // namespace reckon
