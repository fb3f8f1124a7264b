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

/// A matrix that linears multiply, and in fp8 what is known of it: its largest
/// magnitude, its scale, its codes and their transpose. -1: not (yet) there. A
/// weight is a state and has no value.
struct LinearOperand {
  FragmentMirror::Value value = -1;
  int64_t rows = 0, columns = 0;
  bool split = false;      ///< over the tensor ranks
  bool transposes = false; ///< a cast makes the transpose, too
  bool codesSaved = false; ///< the backward reads codes, not the value
  FragmentMirror::Value amax = -1, scale = -1, straight = -1, transposed = -1;
};

/// The weights of a decoder layer, in the order of their linears.
enum LayerWeight {
  WeightQ,
  WeightK,
  WeightV,
  WeightO,
  WeightGate,
  WeightUp,
  WeightDown,
  kLayerWeights
};

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
  /// What the linears multiply: norms with all tokens (-1 where they are not
  /// gathered yet), context and product, weights.
  LinearOperand n1Whole, n2Whole, oWhole, aWhole;
  LinearOperand weights[kLayerWeights];
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
  /// Up to the SwiGLU product: what a backward needs. `again`: in one.
  LayerValues layerForward(FragmentMirror &f, Value x, bool again) const;
  /// The rest of the forward: y.
  Value layerOutput(FragmentMirror &f, LayerValues &layer) const;
  Value layerBackward(FragmentMirror &f, LayerValues &layer, Value dy) const;
  void keepSaved(FragmentMirror &f, const LayerValues &layer) const;
  /// Forward and backward of norm, head and loss.
  Value head(FragmentMirror &f, Value x, Value targets) const;
  LayerValues savedLayer(FragmentMirror &f, Value x) const;

  // Linears. In fp8 (LayerMirrorFp8.cpp) their operands are cast where they
  // are first multiplied.
  bool fp8() const { return shape_.precision == Precision::Fp8; }
  /// Operands of a layer that are not there yet.
  LayerValues emptyLayer(Value x, bool again) const;
  LinearOperand gradient(Value dy, int64_t columns, bool split) const;
  /// Finds the largest magnitudes that are unknown; those of split operands
  /// are reduced together.
  void maxima(FragmentMirror &f, std::vector<LinearOperand *> operands) const;
  void cast(FragmentMirror &f, LinearOperand &operand, bool straight,
            bool transposed) const;
  Value linear(FragmentMirror &f, LinearOperand &x, LinearOperand weight,
               uint64_t bytes) const;
  void gradWeight(FragmentMirror &f, LinearOperand &dy, LinearOperand &x) const;
  Value gradInput(FragmentMirror &f, LinearOperand &dy, LinearOperand weight,
                  uint64_t bytes) const;
  std::vector<uint64_t> savedSizesFp8() const;
  void savedOperandsFp8(FragmentMirror &f, LayerValues &layer) const;

  StageShape shape_;
  ModelDims dims_;
  uint64_t tokens_, hidden_, part_, qWidth_, kvWidth_, ffn_, stats_, logits_,
      rows_;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_LAYERMIRROR_H
