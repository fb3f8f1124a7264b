//===- Time.h - a rough prediction of the step time -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A roofline of every op with global constants, collectives by latency and
// bandwidth, and the pipeline by simulation of its schedule. Good for ranking
// choices; absolute times of untuned shapes can be off by tens of percent.
// docs/planning.md has the formulas and where the constants come from.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_H
#define RECKON_PASSES_MODEL_TIME_H

#include "passes/model/Cluster.h"
#include "passes/model/Dims.h"
#include "passes/model/time/StepTime.h"

namespace reckon::model {

/// `globalBatch` in sequences.
StepTime stepTime(const ModelDims &dims, const Choice &choice,
                  const ClusterSpeeds &cluster, int64_t globalBatch);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_H
