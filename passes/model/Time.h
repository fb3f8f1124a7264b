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
#include "passes/model/Schedule.h"

#include <string>
#include <vector>

namespace reckon::model {

/// One collective of the step, on the rank that spends most on it.
struct CommunicationTime {
  std::string dimension;   ///< tensor, pipeline, data
  std::string collective;  ///< all_reduce, reduce_scatter, ...
  std::string link;        ///< intra_node, inter_node
  double bytesPerStep = 0; ///< sent by the rank, in a ring
  double seconds = 0;
  double exposed = 0; ///< part that lengthens the step
};

/// Where MFU is lost. Items and the MFU sum to 100 points.
struct MfuLoss {
  std::string item;
  double points = 0;
  double seconds = 0;
  double dollarsPer30Days = 0;
};

/// Seconds of one optimizer step of the slowest rank. `step` is the sum of
/// compute, bubble, exposedCommunication, optimizer and other.
struct StepTime {
  double step = 0;
  double ideal = 0; ///< model FLOPs at nominal peak on all devices
  double compute = 0;
  double bubble = 0;
  double exposedCommunication = 0;
  double optimizer = 0;
  double other = 0; ///< host, jitter
  double tokensPerSecond = 0;
  double tokensPerSecondPerDevice = 0;
  double tflopsPerDevice = 0;
  double mfu = 0; ///< fractions; the convention is kFlopConvention
  double hfu = 0;
  std::vector<StageDurations> stages; ///< of one micro-batch
  std::vector<CommunicationTime> communication;
  std::vector<MfuLoss> losses;
};

/// `globalBatch` in sequences.
StepTime stepTime(const ModelDims &dims, const Choice &choice,
                  const ClusterSpeeds &cluster, int64_t globalBatch);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_H
