//===- StepTime.h - the report of one predicted step ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_STEPTIME_H
#define RECKON_PASSES_MODEL_TIME_STEPTIME_H

#include "passes/model/Schedule.h"

#include <string>
#include <vector>

namespace reckon::model {

/// One collective of the step, on the rank that spends most on it.
struct CommunicationTime {
  std::string dimension;   ///< tensor, context, expert, pipeline, data
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
  double other = 0;   ///< host, jitter
  double message = 0; ///< one between two pipeline ranks
  // The same step by when it happens; these three sum to `step` too.
  double pipeline = 0; ///< from the first forward to the last backward
  double update = 0;   ///< exposed reductions and gathers, the optimizer
  double overhead = 0; ///< host and jitter that no stage's work contains
  double tokensPerSecond = 0;
  double tokensPerSecondPerDevice = 0;
  double tflopsPerDevice = 0;
  double mfu = 0; ///< fractions; causal attention, see flopConvention
  double hfu = 0;
  /// The same MFU with attention counted over the whole square (12 L s a d).
  double mfuSquare = 0;
  std::string flopConvention;
  std::vector<StageDurations> stages; ///< of one micro-batch, virtual stages
  std::vector<CommunicationTime> communication;
  std::vector<MfuLoss> losses;

  // Where the constants come from.
  std::string efficiencyFamily; ///< empty: global constants
  double efficiencyFactor = 1;  ///< the fitted one, 1 where none is
  double errorBand = 0; ///< 90 % of comparable measured runs were this near
  std::vector<std::string> warnings;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_STEPTIME_H
