//===- ModelFlops.h - arithmetic of a token for any model -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_MODELFLOPS_H
#define RECKON_PASSES_MODEL_TIME_MODELFLOPS_H

#include "passes/model/Choice.h"
#include "passes/model/Job.h"

namespace reckon::model {

/// How attention's s x s products are counted.
enum class AttentionFlops {
  Causal, ///< the lower triangle: 6 L s a d per token
  Square  ///< all of it: 12 L s a d
};

/// FLOPs of one token, forward and backward.
struct ModelFlops {
  double matmul = 0;    ///< 6 N, N = parameters that one token's matmuls read:
                        ///< head and active experts, not the input embedding
  double attention = 0; ///< 6 or 12 L s a d; (d of queries + of values)/2 for
                        ///< MLA
  double total() const { return matmul + attention; }
};

ModelFlops modelFlops(const ModelShape &model, AttentionFlops convention);

/// One layer's forward FLOPs per token, causal.
double layerForward(const ModelShape &model, bool moe);
double headForward(const ModelShape &model);
/// The scores' and values' part of layerForward().
double attentionForward(const ModelShape &model);

/// Whether full recomputation leaves out the last matmul of a layer, whose
/// result the backward does not read: reckon does, frameworks run it again.
inline bool skipsLastMatmul(const Job &job, bool moe) {
  return job.representation == Representation::Reckon && !moe;
}

/// The convention in one line, to print beside a figure.
const char *describe(AttentionFlops convention);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_MODELFLOPS_H
