//===- LayerMirror.h - the fragments of a Llama stage as buffers ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The order of ops is the one that passes/train and passes/dist emit; every
// compile checks that the sizes agree.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_LAYERMIRROR_H
#define RECKON_PASSES_MODEL_LAYERMIRROR_H

#include "passes/model/FragmentMirror.h"
#include "passes/model/StageModel.h"

namespace reckon::model {

/// Values of one decoder layer. Shapes: T = tokens of a micro-batch, t = TP.
/// Under sequence parallelism x, n1, x1 and n2 have T / t tokens.
struct LayerValues {
  FragmentMirror::Value x;           ///< [T, H] input
  FragmentMirror::Value n1;          ///< [T, H] first norm
  FragmentMirror::Value q, k, v;     ///< [T, a d / t], [T, g d / t], rotated
  FragmentMirror::Value o, lse;      ///< [T, a d / t]; f32 [b, a / t, s]
  FragmentMirror::Value x1;          ///< [T, H] after attention
  FragmentMirror::Value n2;          ///< [T, H] second norm
  FragmentMirror::Value gate, up, a; ///< [T, F / t]
  /// Norms with all tokens, where this fragment has gathered them; else -1.
  FragmentMirror::Value n1Whole = -1, n2Whole = -1;
};

/// Builds the fragments of one shape.
class LayerMirror {
public:
  using Value = FragmentMirror::Value;

  LayerMirror(const ModelDims &dims, const StageShape &shape);

  /// Tensors of a layer that the backward reads, in order, without x.
  std::vector<uint64_t> savedSizes() const;
  /// An activation between layers.
  uint64_t hiddenBytes() const { return part_; }
  uint64_t logitsBytes() const { return logits_; }
  /// Whether alignment rounds none of the fragments' buffers up.
  bool aligned() const;

  FragmentMirror forward() const;
  FragmentMirror backward() const;

private:
  Value allReduce(FragmentMirror &f, Value value) const;
  /// Completes a partial activation; leaves 1/t of its tokens under SP.
  Value reduce(FragmentMirror &f, Value partial) const;
  /// All tokens of an activation.
  Value gather(FragmentMirror &f, Value part) const;
  /// Up to the SwiGLU product: what a backward needs.
  LayerValues layerForward(FragmentMirror &f, Value x) const;
  /// The rest of the forward: y.
  Value layerOutput(FragmentMirror &f, const LayerValues &layer) const;
  Value layerBackward(FragmentMirror &f, const LayerValues &layer,
                      Value dy) const;
  /// Forward and backward of norm, head and loss.
  Value head(FragmentMirror &f, Value x, Value targets) const;
  LayerValues savedLayer(FragmentMirror &f, Value x) const;

  StageShape shape_;
  uint64_t tokens_, hidden_, part_, qWidth_, kvWidth_, ffn_, stats_, logits_, rows_;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_LAYERMIRROR_H
