//===- NcclEnvironment.h - what NCCL and CUDA are told by environment -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_NCCLENVIRONMENT_H
#define RECKON_RUNTIME_CUDA_NCCLENVIRONMENT_H

#include <string>
#include <vector>

namespace reckon::cuda {

/// A variable that a plan needs, and why.
struct Setting {
  std::string name, value, reason;
};

struct EnvironmentNeeds {
  /// Sums in one fixed order, so that equal runs are bit-equal.
  bool deterministic = true;
  /// Streams of the plan. Beyond the 8 queues that the driver has by default,
  /// two streams would share one; 0: leave that as it is.
  unsigned streams = 0;
};

std::vector<Setting> settingsFor(const EnvironmentNeeds &needs);

/// Sets what the user has not set. To be called before the first call of CUDA
/// or NCCL and while the process has one thread. Gives a line for each setting,
/// for the run's log; one that begins with "warning: " tells of a value of the
/// user's that differs and was kept.
std::vector<std::string> applyEnvironment(const std::vector<Setting> &settings);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_NCCLENVIRONMENT_H
