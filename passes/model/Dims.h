//===- Dims.h - the sizes of a model that formulas need -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_DIMS_H
#define RECKON_PASSES_MODEL_DIMS_H

#include "frontends/spec/Spec.h"

#include <cstdint>

namespace reckon::model {

/// A dense Llama. In formulas: V, H, F, L, a, g, d, s.
struct ModelDims {
  int64_t vocab = 0;
  int64_t hidden = 0;
  int64_t ffn = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  int64_t sequence = 0; ///< tokens of one sequence
  double initStddev = 0.02;

  int64_t qWidth() const { return heads * headDim; }
  int64_t kvWidth() const { return kvHeads * headDim; }
  bool operator==(const ModelDims &) const = default;
};

inline ModelDims modelDims(const Spec &spec) {
  const ModelSpec &model = spec.model;
  return {.vocab = *model.vocabSize,
          .hidden = *model.hiddenSize,
          .ffn = *model.intermediateSize,
          .layers = *model.numHiddenLayers,
          .heads = *model.numAttentionHeads,
          .kvHeads = *model.numKeyValueHeads,
          .headDim = *model.headDim,
          .sequence = *spec.training.sequenceLength,
          .initStddev = *model.initializerRange};
}

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_DIMS_H
