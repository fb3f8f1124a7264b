//===- Inputs.h - the terms of goodput from a spec and its plan -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_GOODPUT_INPUTS_H
#define RECKON_PASSES_GOODPUT_INPUTS_H

#include "passes/goodput/Formula.h"
#include "passes/model/Job.h"

#include <cstdint>

namespace reckon::goodput {

/// What the arithmetic needs to know of a plan. Without one all are zero or
/// one: the stall of an asynchronous save then has nothing to hide behind.
struct PlanFacts {
  double stepSeconds = 0;
  /// Of these, forward and backward: state is not written meanwhile, so copies
  /// to the host may run beside them.
  double readOnlySeconds = 0;
  /// Parameters of the heaviest pipeline stage over those of an average one.
  double heaviestStage = 1;
  double mfu = 0; ///< fraction
};

struct Inputs {
  int64_t gpus = 0;
  double gpuMtbfHours = 0;
  double pricePerGpuHour = 0;
  int64_t trainSteps = 0;
  PlanFacts plan;

  /// Saved once: fp32 weights and both moments, 12 bytes a parameter, and the
  /// 2 bytes of the bf16 copy below fp32.
  double bytesPerParameter = 0;
  double checkpointBytes = 0;  ///< of the whole job, replicas removed
  double bytesPerGpu = 0;      ///< of a rank of the heaviest stage
  double storageBandwidth = 0; ///< bytes/s, all machines together
  double copyBandwidth = 0;    ///< bytes/s, one device to its host
  bool async = true;           ///< save to host memory, write beside training
  double writeSeconds = 0;     ///< of a checkpoint to storage
  double copySeconds = 0;      ///< of a rank's share to host memory
  double overheadSeconds = 0;  ///< of a save, which nothing hides

  Terms terms;
  bool stallGiven = false, loadGiven = false; ///< by the spec, not derived

  /// Shortest interval that can be kept up: a step, and 1.1 times the
  /// background write (the next save waits for it).
  double leastInterval() const;
  /// The interval that is used: the best one, but not below the least. Nothing
  /// without progress.
  std::optional<double> interval() const;
  /// The same job's inputs on another number of devices, with the same delta,
  /// T and step time.
  Inputs withGpus(double gpus) const;
  /// The same job's inputs under another plan.
  Inputs withPlan(const PlanFacts &plan) const;

  /// Expected wall seconds for each step of `plan.stepSeconds`: step / G.
  /// Nothing without progress.
  std::optional<double> wallStep() const;
  /// At most wallStep() under any plan whose step takes `stepSeconds` or more,
  /// and nothing only where none of them makes progress. At a fixed tau, G
  /// falls as delta rises and does not depend on the step; so the least delta
  /// any plan can have, the copy wholly hidden, bounds it. tau is the best one
  /// of those not below leastInterval(), and a longer step leaves fewer. Hence
  /// step / G is least for the shortest step with that delta.
  std::optional<double> wallStepBound(double stepSeconds) const;
};

/// Asynchronous: delta = overhead + max(0, copy - forward and backward); the
/// copy moves bytesPerGpu over the link to the host. Synchronous: delta =
/// overhead + checkpointBytes / storage bandwidth.
Inputs makeInputs(const Spec &spec, const PlanFacts &plan);

} // namespace reckon::goodput

#endif // RECKON_PASSES_GOODPUT_INPUTS_H
