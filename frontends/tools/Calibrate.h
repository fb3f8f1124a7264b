//===- Calibrate.h - measured constants of a machine ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_CALIBRATE_H
#define RECKON_FRONTENDS_TOOLS_CALIBRATE_H

#include "frontends/spec/Accelerators.h"
#include "runtime/base/Status.h"

#include <string>
#include <utility>
#include <vector>

namespace reckon::calibrate {

struct Measurement {
  std::string what;
  double value = 0;
  std::string unit;
};

struct Calibration {
  std::string device;
  std::string accelerator;
  std::vector<Measurement> measurements;
  /// By the names of efficiency.csv, in the order in which they were found.
  std::vector<std::pair<std::string, double>> constants;
};

/// All-reduces between two processes of this machine: share of the nominal
/// link (`intra`, of the fast link) and latency. Forks.
Status measureCollectives(const Accelerator &nominal, double seconds,
                          Calibration &result);

/// The runtime's kernels in fp32: best matmul, attention, a norm, a launch.
Status measureKernels(const Accelerator &nominal, int threads, double seconds,
                      Calibration &result);

/// The file that cluster.calibration names.
std::string toYaml(const Calibration &calibration, const std::string &date);

} // namespace reckon::calibrate

#endif // RECKON_FRONTENDS_TOOLS_CALIBRATE_H
