//===- Optimizer.h - what a step does once: reductions and the update -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_OPTIMIZER_H
#define RECKON_PASSES_MODEL_TIME_OPTIMIZER_H

#include "passes/model/time/Layer.h"

namespace reckon::model {

/// Parameters of one pipeline rank, in elements on one device.
struct LocalParameters {
  double dense = 0;   ///< reduced over dp * cp
  double experts = 0; ///< reduced over the ranks that hold the same experts
  double total() const { return dense + experts; }
};

/// Seconds and bytes of gradient reduction and parameter gathering.
struct DataTime {
  double reduce = 0, gather = 0; ///< seconds
  double reduceBytes = 0, gatherBytes = 0;
  double exposed = 0;
};

/// Once a step: reduce-scatter and all-gather, or an all-reduce without ZeRO,
/// and what of it does not hide behind `backward` and `forward` (seconds of
/// the busiest rank's pass over one micro-batch).
DataTime dataTime(const Job &job, const Efficiency &e, const Links &links,
                  const Choice &choice, const LocalParameters &parameters,
                  double forward, double backward);

/// AdamW with its norm: bytes of the shard and of the local copies.
double optimizerTime(const Kernels &kernels, const Choice &choice,
                     const LocalParameters &parameters);

/// Whether parameters or gradients are exchanged every micro-batch.
bool shardsEveryMicroBatch(Representation representation, const Choice &choice);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_OPTIMIZER_H
