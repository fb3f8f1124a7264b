//===- Flops.h - arithmetic of a token ------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_FLOPS_H
#define RECKON_PASSES_MODEL_FLOPS_H

#include "passes/model/Choice.h"
#include "passes/model/Dims.h"

namespace reckon::model {

/// FLOPs per token by convention, so that MFU figures can be compared.
struct TokenFlops {
  /// 6 N + 6 L s a d: N = parameters that matmuls read (with the head, without
  /// the input embedding), attention counted over the lower triangle.
  double model = 0;
  /// With what recomputation adds: the forward of every decoder layer but its
  /// last matmul (down), whose result the backward does not read. Scores that
  /// the attention backward recomputes are not counted.
  double hardware = 0;
};

/// The convention of `TokenFlops::model` in one line, to print beside it.
inline constexpr const char *kFlopConvention =
    "6N + 6Lsad per token: N without the input embedding, causal attention";

TokenFlops tokenFlops(const ModelDims &dims, Recompute recompute);

/// Forward FLOPs per token of one decoder layer, causal attention included,
/// and of the head.
double layerForwardFlops(const ModelDims &dims);
double headForwardFlops(const ModelDims &dims);
/// Forward of the attention scores and values alone, per token and layer:
/// 4 s a d / 2.
double attentionForwardFlops(const ModelDims &dims);
/// Part of layerForwardFlops that full recomputation runs again.
double recomputedLayerFlops(const ModelDims &dims);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_FLOPS_H
