//===- Activations.h - what a layer saves and needs while it runs ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Symbols: T = tokens of a micro-batch on a rank, b s / c; t = TP; a, g heads;
// u = T h, divided by t under sequence parallelism where marked *. Bytes of a
// layer and micro-batch in the general form (Korthikanti et al. 2022, itemised
// for grouped heads and SwiGLU), with n, x and l from the memory profile:
//   norms and residuals   n u*                       n = 8
//   dropout masks         2 u*                       models with biases only
//   q, k, v, context      2 T (q + k + v + o) / t    widths of all heads
//   softmax statistics    4 T a / t
//   scores                x T s a / t                x = 0 fused, else 5
//   feed-forward          6 T f / t                  gate, up, product;
//                         4 T f / t                  GELU: input, output
// 34 u is n + dropout + 24 / t with f = 4 h; 33.5 u its itemised form for
// Llama 70B (q = 1, k = v = 1/8, f = 3.5 h).
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_ACTIVATIONS_H
#define RECKON_PASSES_MODEL_ACCOUNT_ACTIVATIONS_H

#include "passes/model/Job.h"
#include "passes/model/account/MemoryProfile.h"

namespace reckon::model {

/// Bytes of one layer and micro-batch.
struct LayerActivations {
  uint64_t norms = 0;     ///< norms, residuals, dropout masks
  uint64_t attention = 0; ///< q, k, v, context, statistics, MLA's latents
  uint64_t scores = 0;    ///< of unfused attention
  uint64_t mlp = 0;       ///< inner values; of an expert layer the shared ones
  uint64_t routed = 0;    ///< routed experts: inner values, copies of rows
  uint64_t input = 0;     ///< the layer's input: kept by full recompute
  uint64_t selective = 0; ///< all that selective recompute keeps
  /// Part of whole() that the gradients of the weights read, and the gradients
  /// of the matmuls' outputs, which a schedule that splits the backward keeps.
  uint64_t matmulInputs = 0, matmulGradients = 0;

  uint64_t whole() const { return norms + attention + scores + mlp + routed; }
  uint64_t kept(Recompute mode) const {
    return mode == Recompute::None        ? whole()
           : mode == Recompute::Selective ? selective
                                          : input;
  }
};

/// What one choice needs per layer and stage, whatever its layout.
struct ActivationBytes {
  LayerActivations dense, moe;
  uint64_t tokens = 0;       ///< token numbers of a micro-batch
  uint64_t embedding = 0;    ///< of a micro-batch in flight on the first stage
                             ///< beside its layers: tokens, dropout mask
  uint64_t head = 0;         ///< final norm's input and output, one micro-batch
  uint64_t logits = 0;       ///< one micro-batch, V padded and divided
  uint64_t hidden = 0;       ///< an activation between layers, * u 2
  uint64_t gathered = 0;     ///< the same with all tokens
  uint64_t gatheredKeys = 0; ///< queries, keys and values of all ranks, where
                             ///< Megatron parts a head of keys
  uint64_t dispatch = 0;     ///< rows sent to experts, once
  uint64_t context = 0;      ///< buffers of context parallelism
  uint64_t temporaries = 0;  ///< gradients of one layer's widest values
};

ActivationBytes activationBytes(const Job &job, const MemoryProfile &profile,
                                const Choice &choice, int64_t vocabularyRows);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_ACTIVATIONS_H
