//===- Estimates.h - what the frameworks' own estimators say --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// For comparison with our account. The formulas are those of Megatron-LM's
// megatron/training/theoretical_memory_usage.py (commit d98e8a64) and of
// DeepSpeed's estimate_zero2_model_states_mem_needs and estimate_zero3_... They
// know less than we do: the first one nothing of expert and context
// parallelism, of routers and biases, of stages other than the first, of gated
// MLPs' and of experts' activations, the others nothing of activations.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_ESTIMATES_H
#define RECKON_PASSES_MODEL_ACCOUNT_ESTIMATES_H

#include "passes/model/Job.h"

#include <string>
#include <vector>

namespace reckon::model {

/// Bytes of a rank.
struct MegatronEstimate {
  double parameters = 0;  ///< of the most loaded rank, elements
  double statesBytes = 0; ///< weights, gradients, optimizer
  double activationBytes = 0;
  double totalBytes() const { return statesBytes + activationBytes; }
};

/// Most loaded rank: (layers / p + prediction layers + one embedding) / t
/// parameters, two embeddings with p = 1 and an untied head; 18 bytes each, or
/// 6 + 12 / DP with the distributed optimizer. Activations of the first stage:
/// s b h (18 + 4 f / h) a layer, s b (8 + h) p for the embedding, times 1 + (p
/// - 1) / (p v) when interleaved, plus 4 s b h (1 + V / h) when p = 1, all
/// divided by t.
MegatronEstimate megatronEstimate(const Job &job, const Choice &choice);

/// Model states of a rank under ZeRO-2 (2 P + 18 P / world) or ZeRO-3 (4 times
/// the largest layer + 18 P / world); plain 18 P without either.
double deepspeedEstimate(const Job &job, const Choice &choice);

/// One collective of the data-parallel ranks in a step.
struct StateTraffic {
  const char *collective = "";
  int64_t group = 1;     ///< ranks
  int64_t elements = 0;  ///< of the rank's parameters, before padding
  int64_t wireBytes = 0; ///< of one element
  int64_t repetitions = 0;

  /// Sent by a rank in a ring: (n - 1) / n of the elements, twice that for an
  /// all-reduce.
  double bytes() const;
};

/// What keeps the states of one pipeline rank consistent, a step long, in the
/// terms of the job's representation. `elements` are the rank's dense and
/// expert parameters, as StateBytes counts them.
std::vector<StateTraffic> stateTraffic(const Job &job, const Choice &choice,
                                       int64_t denseElements,
                                       int64_t expertElements);

/// Resident bytes of a parameter, as the literature writes them: 2 + 4 + 12/d.
std::string seriesFigure(const Job &job, const Choice &choice);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_ESTIMATES_H
