//===- ModelShape.h - the sizes of any model that the planner accounts ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// All families: grouped heads, SwiGLU or GELU, tied embeddings, learned
// positions, experts with shared ones and dense first layers, MLA, MTP.
// ModelDims is the part of it that the compiler can lower.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_MODELSHAPE_H
#define RECKON_PASSES_MODEL_MODELSHAPE_H

#include "frontends/spec/Spec.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace reckon::model {

/// Low-rank (latent) attention; widths of one head.
struct MlaShape {
  int64_t qRank = 0; ///< 0: queries are not compressed
  int64_t kvRank = 0;
  int64_t nope = 0, rope = 0, value = 0;
  bool operator==(const MlaShape &) const = default;
};

/// Parameters by part, in elements, before any padding or split. The parts
/// that tensor parallelism splits are apart from those that it copies.
struct LayerParameters {
  int64_t attention = 0;       ///< matrices (and biases) that TP splits
  int64_t attentionCopied = 0; ///< MLA's down-projections: whole on every rank
  int64_t mlp = 0;             ///< dense feed-forward, split
  int64_t experts = 0;         ///< all routed experts, split by EP and ETP
  int64_t shared = 0;          ///< shared experts, split by TP
  int64_t router = 0;          ///< copied
  int64_t norms = 0;           ///< and biases added after a reduction; copied

  int64_t total() const {
    return attention + attentionCopied + mlp + experts + shared + router +
           norms;
  }
};

struct ModelShape {
  std::string name;
  std::string architecture; ///< the spec's word
  int64_t vocab = 0, hidden = 0, layers = 0;
  int64_t ffn = 0; ///< inner width of a dense feed-forward block
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  int64_t sequence = 0;       ///< tokens of one sequence
  bool gated = true;          ///< SwiGLU: three matrices; else GELU: two
  bool layerNorm = false;     ///< with bias; else RMSNorm
  bool linearBias = false;    ///< biases on all linear layers (GPT-2)
  bool attentionBias = false; ///< on q, k, v (Qwen 2)
  bool qkNorm = false;
  bool tied = false;
  int64_t learnedPositions = 0; ///< rows of a position embedding, 0: rotary
  MlaShape mla;                 ///< kvRank 0: no MLA
  int64_t experts = 0, topK = 0, expertFfn = 0, sharedExperts = 0;
  int64_t firstDense = 0; ///< leading layers without experts
  int64_t mtpLayers = 0;

  bool isMla() const { return mla.kvRank > 0; }
  bool isMoe() const { return experts > 0; }
  bool moeLayer(int64_t layer) const { return isMoe() && layer >= firstDense; }
  int64_t qWidth() const {
    return heads * (isMla() ? mla.nope + mla.rope : headDim);
  }
  /// Keys; values have valueWidth().
  int64_t kvWidth() const { return isMla() ? qWidth() : kvHeads * headDim; }
  int64_t valueWidth() const {
    return isMla() ? heads * mla.value : kvHeads * headDim;
  }
  /// Parts of the keys and values among `tp` ranks: with fewer heads than ranks
  /// several ranks have the same one.
  int64_t keyWays(int64_t tp) const {
    return isMla() ? tp : std::min(tp, std::max<int64_t>(1, kvHeads));
  }
  /// What the output projection reads.
  int64_t contextWidth() const {
    return isMla() ? heads * mla.value : heads * headDim;
  }

  LayerParameters layerParameters(bool moe) const;
  int64_t embeddingParameters() const; ///< with learned positions
  int64_t finalNormParameters() const;
  /// 0 when tied.
  int64_t headParameters() const { return tied ? 0 : vocab * hidden; }
  /// One multi-token prediction module: a layer, its projection [h, 2h] and
  /// norms; it shares embedding and head.
  int64_t mtpParameters() const;

  int64_t parameters() const;
  /// With the experts that one token visits only.
  int64_t activeParameters() const;

  bool operator==(const ModelShape &) const = default;
};

ModelShape modelShape(const Spec &spec);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_MODELSHAPE_H
