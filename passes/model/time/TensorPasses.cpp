//===- TensorPasses.cpp - what tensor ranks send each other ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/TensorPasses.h"

#include "passes/model/time/ModelFlops.h"

using namespace reckon;
using namespace reckon::model;

static constexpr auto kFull = static_cast<size_t>(Recompute::Full);

static bool ours(const Job &job) {
  return job.representation == Representation::Reckon;
}

TensorPasses model::layerPasses(const Job &job, bool sequenceParallel,
                                double forward, bool moe) {
  TensorPasses passes{.forward = forward};
  passes.backward.fill(forward);
  passes.again[kFull] = forward;
  if (!ours(job))
    return passes;
  if (sequenceParallel) {
    // Each half of the layer begins with a gather of its norm's output.
    passes.backward.fill(1.5 * forward);
    passes.backward[kFull] = forward;
  }
  if (skipsLastMatmul(job, moe))
    passes.again[kFull] -= sequenceParallel ? 1 : 2;
  return passes;
}

TensorPasses model::embeddingPasses(const Job &job, bool sequenceParallel) {
  TensorPasses passes{.alike = true};
  // Without sequence parallelism every rank has the whole gradient already.
  bool whole = ours(job) && !sequenceParallel;
  passes.forward = whole ? 2 : 1;
  passes.backward.fill(whole ? 0 : 1);
  return passes;
}

TensorPasses model::headPasses(const Job &job, bool sequenceParallel) {
  TensorPasses passes{.alike = true};
  if (!ours(job)) {
    passes.forward = 1;
    passes.backward.fill(1);
    return passes;
  }
  // Its input is gathered for the logits and again for the weights' gradient.
  passes.forward = sequenceParallel ? 1 : 0;
  passes.backward.fill(2);
  return passes;
}

double model::localParameters(const Job &job, const LayerParameters &layer,
                              int64_t tp) {
  auto t = static_cast<double>(tp);
  double sum =
      static_cast<double>(layer.attention + layer.mlp + layer.shared) / t +
      static_cast<double>(layer.attentionCopied + layer.router + layer.norms);
  const ModelShape &m = job.model;
  auto ways = static_cast<double>(m.keyWays(tp));
  if (!gathersKeys(job, tp))
    sum += static_cast<double>(m.hidden * (m.kvWidth() + m.valueWidth())) *
           (1 / ways - 1 / t);
  return sum;
}
