//===- TensorPasses.h - what tensor ranks send each other -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_TENSORPASSES_H
#define RECKON_PASSES_MODEL_TIME_TENSORPASSES_H

#include "passes/model/Job.h"

#include <array>

namespace reckon::model {

/// Passes over the hidden states of one micro-batch: an all-gather or a
/// reduce-scatter is one, an all-reduce two. Indices are Recompute values.
struct TensorPasses {
  double forward = 0;
  std::array<double, 3> backward{};
  std::array<double, 3> again{}; ///< of the forward, repeated in the backward
  /// No matmul beside the backward's that could hide them better than the
  /// forward's.
  bool alike = false;
  double inBackward(Recompute r) const {
    return backward[static_cast<size_t>(r)] + again[static_cast<size_t>(r)];
  }
};

/// A decoder layer. `forward` passes in its forward: four, or two when its
/// feed-forward block is experts alone. Frameworks send as many back and run
/// the whole forward again (that they gather inputs once more for the weights'
/// gradients hides behind matmuls). Reckon does what LayerMirror lists: under
/// sequence parallelism the backward gathers the norms' outputs again, unless
/// the layer was recomputed, whose last reduction nobody reads.
TensorPasses layerPasses(const Job &job, bool sequenceParallel, double forward,
                         bool moe);
TensorPasses embeddingPasses(const Job &job, bool sequenceParallel);
TensorPasses headPasses(const Job &job, bool sequenceParallel);

/// Whether a rank holds less than one head of keys and the heads are put
/// together by a gather, as Megatron does, rather than copied.
inline bool gathersKeys(const Job &job, int64_t tp) {
  return job.representation == Representation::Megatron &&
         job.model.keyWays(tp) < tp;
}

/// Elements of the dense part of a layer on one rank.
double localParameters(const Job &job, const LayerParameters &layer,
                       int64_t tp);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_TENSORPASSES_H
