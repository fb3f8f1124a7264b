//===- Job.cpp - what is fixed while choices are compared -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Job.h"

#include "passes/model/StageModel.h"
#include "passes/model/schedule/Given.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

/// The most devices that one chassis holds.
static constexpr int64_t kNodeSize = 16;

int64_t Job::domain() const {
  int64_t size =
      std::max<int64_t>(1, std::min(gpusPerNode, device.intraNodeSize));
  // A rack-scale link joins several nodes; jobs use a power of two of them, so
  // that groups do not straddle racks.
  if (!device.isCpu() && device.intraNodeSize > kNodeSize)
    while (2 * size <= std::min(device.intraNodeSize, devices()))
      size *= 2;
  return size;
}

double Job::peakFlops() const {
  double tflops = device.bf16DenseTflops;
  if (precision == Precision::Fp32)
    tflops = device.fp32Tflops;
  else if (precision == Precision::Fp8 && device.fp8DenseTflops > 0)
    tflops = device.fp8DenseTflops;
  return tflops * 1e12;
}

Job model::makeJob(const Spec &spec) {
  const ClusterSpec &cluster = spec.cluster;
  const Accelerator &device = *cluster.accelerator;
  Result<std::shared_ptr<const GivenSchedule>> schedule =
      readScheduleFile(spec);
  return {.model = modelShape(spec),
          .device = device,
          .nodes = *cluster.nodes,
          .gpusPerNode = *cluster.gpusPerNode,
          .intraBandwidth = device.intraNodeBwGbs * 1e9,
          .interBandwidth = *cluster.interNodeBandwidthGbps * 1e9 / 8,
          .memoryBandwidth = device.memBwGbs * 1e9,
          .reserveBytes = reserveBytes(spec),
          .limitBytes =
              static_cast<uint64_t>(spec.constraints.memoryLimitBytes()),
          .pricePerGpuHour = *cluster.pricePerGpuHour,
          .gpuMtbfHours = *cluster.gpuMtbfHours,
          .globalBatch = *spec.training.globalBatchSize,
          .trainSteps = *spec.training.trainSteps,
          .precision = *spec.training.precision,
          .gradReduce = *spec.training.gradReduceDtype,
          .representation = *spec.parallelism.representation,
          .profile = *cluster.efficiencyProfile,
          .moeCapacityFactor = *spec.parallelism.moeCapacityFactor,
          .calibration = cluster.calibrated,
          .schedule = schedule.ok() ? *schedule : nullptr};
}

std::string model::whyNotCompilable(const ModelShape &model) {
  if (model.isMoe())
    return "experts";
  if (model.isMla())
    return "MLA";
  if (model.mtpLayers > 0)
    return "multi-token prediction";
  if (model.architecture != "llama")
    return "architecture " + model.architecture;
  if (model.tied)
    return "tied embeddings";
  if (model.attentionBias || model.qkNorm)
    return "biases or norms of queries and keys";
  return "";
}

std::string model::whyNotCompilable(const Choice &choice) {
  if (choice.cp > 1)
    return "context_parallel above 1";
  if (choice.ep > 1 || choice.etp > 1)
    return "expert_parallel above 1";
  if (choice.v > 1)
    return "virtual_pipeline above 1";
  if (choice.zero > 1)
    return "zero_stage above 1";
  if (choice.recompute == Recompute::Selective ||
      !choice.recomputeLayers.empty())
    return "recompute other than none and full";
  if (choice.schedule != ScheduleKind::GPipe &&
      choice.schedule != ScheduleKind::OneFOneB)
    return std::string("pipeline_schedule ") + toString(choice.schedule);
  if (std::find(choice.layout.begin(), choice.layout.end(), 0) !=
      choice.layout.end())
    return "a stage without layers";
  return "";
}
