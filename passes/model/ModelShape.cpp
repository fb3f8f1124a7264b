//===- ModelShape.cpp - parameters of any model ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/ModelShape.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

LayerParameters ModelShape::layerParameters(bool moe) const {
  LayerParameters p;
  if (isMla()) {
    int64_t query = mla.nope + mla.rope;
    if (mla.qRank > 0) {
      p.attentionCopied += hidden * mla.qRank;
      p.norms += mla.qRank;
      p.attention += mla.qRank * heads * query;
    } else {
      p.attention += hidden * heads * query;
    }
    p.attentionCopied += hidden * (mla.kvRank + mla.rope);
    p.norms += mla.kvRank;
    p.attention += mla.kvRank * heads * (mla.nope + mla.value);
    p.attention += heads * mla.value * hidden;
  } else {
    p.attention = hidden * (qWidth() + kvWidth() + valueWidth()) +
                  contextWidth() * hidden;
    if (attentionBias || linearBias)
      p.attention += qWidth() + kvWidth() + valueWidth();
    if (qkNorm)
      p.norms += 2 * headDim;
  }
  p.norms += (layerNorm ? 4 : 2) * hidden;
  if (linearBias)
    p.norms += hidden; // the output projection's, added after its reduction
  int64_t matrices = gated ? 3 : 2;
  if (!moe) {
    p.mlp = matrices * hidden * ffn;
    if (linearBias) {
      p.mlp += (matrices - 1) * ffn;
      p.norms += hidden;
    }
    return p;
  }
  p.router = hidden * experts;
  p.experts = experts * matrices * hidden * expertFfn;
  p.shared = sharedExperts * matrices * hidden * expertFfn;
  return p;
}

int64_t ModelShape::embeddingParameters() const {
  return (vocab + learnedPositions) * hidden;
}

int64_t ModelShape::finalNormParameters() const {
  return (layerNorm ? 2 : 1) * hidden;
}

int64_t ModelShape::mtpParameters() const {
  // Norms of the embedding, of the hidden state and before the head.
  return layerParameters(isMoe()).total() + 2 * hidden * hidden +
         3 * finalNormParameters();
}

int64_t ModelShape::parameters() const {
  int64_t dense = isMoe() ? std::min(firstDense, layers) : layers;
  return embeddingParameters() + dense * layerParameters(false).total() +
         (layers - dense) * layerParameters(true).total() +
         finalNormParameters() + headParameters() + mtpLayers * mtpParameters();
}

int64_t ModelShape::activeParameters() const {
  if (!isMoe())
    return parameters();
  int64_t moeLayers = layers - std::min(firstDense, layers) + mtpLayers;
  int64_t idle = experts - std::min(topK, experts);
  return parameters() - moeLayers * idle * (gated ? 3 : 2) * hidden * expertFfn;
}

ModelShape model::modelShape(const Spec &spec) {
  const ModelSpec &m = spec.model;
  bool gpt2 = *m.architecture == "gpt2";
  ModelShape shape;
  shape.name = *m.name;
  shape.architecture = *m.architecture;
  shape.vocab = *m.vocabSize;
  shape.hidden = *m.hiddenSize;
  shape.layers = *m.numHiddenLayers;
  shape.ffn = *m.intermediateSize;
  shape.heads = *m.numAttentionHeads;
  shape.kvHeads = *m.numKeyValueHeads;
  shape.headDim = *m.headDim;
  shape.sequence = *spec.training.sequenceLength;
  shape.gated = !gpt2;
  shape.layerNorm = gpt2;
  shape.linearBias = gpt2;
  shape.attentionBias = *m.attentionBias;
  shape.qkNorm = *m.qkNorm;
  shape.tied = *m.tieWordEmbeddings;
  if (gpt2)
    shape.learnedPositions =
        *m.maxPositionEmbeddings ? *m.maxPositionEmbeddings : shape.sequence;
  shape.mla = {.qRank = *m.qLoraRank,
               .kvRank = *m.kvLoraRank,
               .nope = *m.qkNopeHeadDim,
               .rope = *m.qkRopeHeadDim,
               .value = *m.vHeadDim};
  shape.experts = *m.numExperts;
  if (shape.experts > 0) {
    shape.topK = *m.numExpertsPerTok;
    shape.expertFfn =
        *m.moeIntermediateSize ? *m.moeIntermediateSize : shape.ffn;
    shape.sharedExperts = *m.nSharedExperts;
    shape.firstDense = *m.firstKDenseReplace;
  }
  shape.mtpLayers = *m.numNextnPredictLayers;
  return shape;
}
