//===- Inputs.cpp - the terms of goodput from a spec and its plan ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Inputs.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::goodput;

double Inputs::leastInterval() const {
  return std::max(plan.stepSeconds, async ? 1.1 * writeSeconds : 0.0);
}

std::optional<double> Inputs::interval() const {
  std::optional<double> best = bestInterval(terms);
  if (!best)
    return std::nullopt;
  double tau = std::max(*best, leastInterval());
  // A save that costs nothing would be made all the time.
  if (tau == 0)
    return std::nullopt;
  if (leastWaste(terms) > 1 || goodput::goodput(terms, tau) <= 0)
    return std::nullopt;
  return tau;
}

Inputs Inputs::withGpus(double count) const {
  Inputs other = *this;
  other.gpus = static_cast<int64_t>(count);
  other.terms.mtbf = jobMtbf(gpuMtbfHours, count) * 3600;
  return other;
}

Inputs Inputs::withPlan(const PlanFacts &facts) const {
  Inputs other = *this;
  other.plan = facts;
  other.bytesPerGpu =
      checkpointBytes / static_cast<double>(gpus) * facts.heaviestStage;
  other.copySeconds = other.bytesPerGpu / copyBandwidth;
  if (!stallGiven)
    other.terms.delta =
        overheadSeconds +
        (async ? std::max(0.0, other.copySeconds - facts.readOnlySeconds)
               : writeSeconds);
  return other;
}

std::optional<double> Inputs::wallStep() const {
  std::optional<double> tau = interval();
  if (!tau)
    return std::nullopt;
  return plan.stepSeconds / goodput::goodput(terms, *tau);
}

std::optional<double> Inputs::wallStepBound(double stepSeconds) const {
  return withPlan({.stepSeconds = stepSeconds, .readOnlySeconds = HUGE_VAL})
      .wallStep();
}

Inputs goodput::makeInputs(const Spec &spec, const PlanFacts &plan) {
  const ResilienceSpec &resilience = spec.cluster.resilience;
  Inputs in;
  in.gpus = spec.cluster.worldSize();
  in.gpuMtbfHours = *spec.cluster.gpuMtbfHours;
  in.pricePerGpuHour = *spec.cluster.pricePerGpuHour;
  in.trainSteps = *spec.training.trainSteps;
  in.async = *spec.training.checkpoint.async;

  in.bytesPerParameter = *spec.training.precision == Precision::Fp32 ? 12 : 14;
  in.checkpointBytes =
      in.bytesPerParameter *
      static_cast<double>(model::modelShape(spec).parameters());
  in.storageBandwidth = resilience.checkpointBandwidthGbs.given
                            ? *resilience.checkpointBandwidthGbs * 1e9
                            : 2e9 * static_cast<double>(*spec.cluster.nodes);
  in.copyBandwidth = *resilience.copyBandwidthGbs * 1e9;
  in.writeSeconds = in.checkpointBytes / in.storageBandwidth;
  in.overheadSeconds = *resilience.checkpointOverheadS;

  in.terms.mtbf = jobMtbf(in.gpuMtbfHours, static_cast<double>(in.gpus)) * 3600;
  in.stallGiven = resilience.checkpointStallS.given;
  if (in.stallGiven)
    in.terms.delta = *resilience.checkpointStallS;
  in.terms.detect = *resilience.detectS;
  in.terms.restart = *resilience.restartS;
  in.loadGiven = resilience.loadS.given;
  in.terms.load = in.loadGiven ? *resilience.loadS : in.writeSeconds;
  return in.withPlan(plan);
}
