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
  spec.type.value = *type == "llama3" ? RopeType::Llama3 : RopeType::None;
  spec.factor = reader.real(section + ".factor");
  spec.lowFreqFactor = reader.real(section + ".low_freq_factor");
  spec.highFreqFactor = reader.real(section + ".high_freq_factor");
  spec.originalMaxPositionEmbeddings =
      reader.integer(section + ".original_max_position_embeddings");
  if (*spec.type != RopeType::Llama3)
    return spec;
  for (const KeyRow *row : keysBelow(section))
    if (row->fallback == "(required by llama3)" && !reader.find(row->path))
      reader.missing(*row);
  double low = *spec.lowFreqFactor, high = *spec.highFreqFactor;
  if (low > 0 && high > 0 && high <= low)
    reader.error(spec.highFreqFactor.loc,
                 "expected model.rope_scaling.high_freq_factor above "
                 "low_freq_factor " +
                     formatNumber(low) + ", got " + formatNumber(high) +
                     "; Llama 3 uses 4 and 1");
  return spec;
}

} // namespace

ModelSpec readModel(Reader &reader) {
  ModelSpec model;
  model.loc = reader.locate("model");
  if (const Entry *config = reader.find("model.hf_config");
      config && !isNeutral(config->value))
    reader.error(config->loc,
                 "model.hf_config is not supported by this version; copy the "
                 "keys of that file under model");
  model.name = reader.text("model.name");
  model.architecture = reader.word("model.architecture");
  model.vocabSize = reader.integer("model.vocab_size");
  model.hiddenSize = reader.integer("model.hidden_size");
  model.intermediateSize = reader.integer("model.intermediate_size");
  model.numHiddenLayers = reader.integer("model.num_hidden_layers");
  model.numAttentionHeads = reader.integer("model.num_attention_heads");
  model.numKeyValueHeads = reader.integer("model.num_key_value_heads");
  model.headDim = reader.integer("model.head_dim");
  model.tieWordEmbeddings = reader.flag("model.tie_word_embeddings");
  model.ropeTheta = reader.real("model.rope_theta");
  model.ropeScaling = readRopeScaling(reader);
  model.rmsNormEps = reader.real("model.rms_norm_eps");
  model.initializerRange = reader.real("model.initializer_range");
  model.maxPositionEmbeddings = reader.integer("model.max_position_embeddings");
  reader.word("model.hidden_act");
  reader.flag("model.attention_bias");
  reader.flag("model.qk_norm");
  if (!model.architecture->empty())
    readForeignKeys(reader, *model.architecture);

  if (!model.numKeyValueHeads.given) {
    model.numKeyValueHeads.value = *model.numAttentionHeads;
    model.numKeyValueHeads.loc = model.numAttentionHeads.loc;
  }
  int64_t hidden = *model.hiddenSize, heads = *model.numAttentionHeads;
  if (!model.headDim.given && hidden > 0 && heads > 0) {
    model.headDim.loc = model.numAttentionHeads.loc;
    if (hidden % heads == 0)
      model.headDim.value = hidden / heads;
    else
      reader.error(model.numAttentionHeads.loc,
                   "expected model.num_attention_heads to divide hidden_size " +
                       std::to_string(hidden) + ", got " +
                       std::to_string(heads) +
                       "; change one of them or give head_dim");
  }
  return model;
}

} // namespace reckon
