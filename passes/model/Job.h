//===- Job.h - what is fixed while choices are compared -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_JOB_H
#define RECKON_PASSES_MODEL_JOB_H

#include "passes/model/Choice.h"
#include "passes/model/ModelShape.h"

#include <string>
#include <utility>
#include <vector>

namespace reckon::model {

/// One model, machine and training run: the input, beside a Choice, of every
/// memory and time formula. Plain values, so that what-if questions copy and
/// change it.
struct Job {
  ModelShape model;

  // The machine. Bandwidths in bytes/s per device and direction.
  Accelerator device;
  int64_t nodes = 1;
  int64_t gpusPerNode = 1;
  double intraBandwidth = 0; ///< within an NVLink domain
  double interBandwidth = 0; ///< between domains
  double memoryBandwidth = 0;
  uint64_t reserveBytes = 0; ///< driver, libraries
  uint64_t limitBytes = 0;   ///< bound of total - reserve of a rank
  double pricePerGpuHour = 0;
  double gpuMtbfHours = 0;

  // The run.
  int64_t globalBatch = 0; ///< sequences a step
  int64_t trainSteps = 0;
  Precision precision = Precision::Bf16;
  GradReduceDtype gradReduce = GradReduceDtype::Fp32;
  Representation representation = Representation::Reckon;
  std::string profile;          ///< cluster.efficiency_profile, empty for none
  double moeCapacityFactor = 0; ///< 0: dropless
  /// Measured constants by their name in time/efficiency.csv; they win.
  std::vector<std::pair<std::string, double>> calibration{};
  /// Of `pipeline_schedule: csv:FILE`; null without one, or when the file is no
  /// schedule (readScheduleFile() says why).
  std::shared_ptr<const GivenSchedule> schedule{};

  int64_t devices() const { return nodes * gpusPerNode; }
  /// Devices that share the fast link: of one node, or of a rack where the
  /// accelerator's link spans nodes (NVL72).
  int64_t domain() const;
  /// Whether a group of `size` ranks, `stride` apart, stays in one domain.
  bool withinDomain(int64_t stride, int64_t size) const {
    return stride * size <= domain() && domain() % (stride * size) == 0;
  }
  double tokensPerStep() const {
    return static_cast<double>(globalBatch) *
           static_cast<double>(model.sequence);
  }
  /// Data-sheet peak of the training precision, FLOP/s. fp8 counts the fp8
  /// peak where the device has one.
  double peakFlops() const;
};

Job makeJob(const Spec &spec);

/// Why `reckon compile` cannot lower the model at all, in a few words; empty
/// when it can.
std::string whyNotCompilable(const ModelShape &model);
/// The same for one choice of a model that it can lower.
std::string whyNotCompilable(const Choice &choice);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_JOB_H
