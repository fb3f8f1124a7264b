//===- NcclEnvironment.cpp - what NCCL and CUDA are told by environment ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/NcclEnvironment.h"

#include <algorithm>
#include <cstdlib>

namespace reckon::cuda {

std::vector<Setting> settingsFor(const EnvironmentNeeds &needs) {
  constexpr unsigned defaultQueues = 8, mostQueues = 32;
  std::vector<Setting> settings = {
      {"NCCL_LAUNCH_ORDER_IMPLICIT", "1",
       "communicators share the GPU: their kernels start in the order of the "
       "plan on every rank, so none holds what an earlier one needs"},
  };
  if (needs.deterministic) {
    settings.push_back({"NCCL_ALGO", "Ring",
                        "sums have one order whatever their size; trees and "
                        "switches would add in others"});
    settings.push_back({"NCCL_NVLS_ENABLE", "0",
                        "switches do not add, so they need no buffers"});
  }
  if (needs.streams > defaultQueues)
    settings.push_back(
        {"CUDA_DEVICE_MAX_CONNECTIONS",
         std::to_string(std::min(needs.streams, mostQueues)),
         "the plan has more streams than the driver has queues: "
         "an operation could wait behind one of another stream"});
  return settings;
}

std::vector<std::string>
applyEnvironment(const std::vector<Setting> &settings) {
  std::vector<std::string> lines;
  for (const Setting &setting : settings) {
    const char *own = std::getenv(setting.name.c_str());
    if (own && setting.value != own) {
      lines.push_back("warning: " + setting.name + "=" + own +
                      " is kept as set by the user, the plan expects " +
                      setting.value + ": " + setting.reason);
      continue;
    }
    ::setenv(setting.name.c_str(), setting.value.c_str(), 0);
    lines.push_back(setting.name + "=" + setting.value + ": " + setting.reason);
  }
  return lines;
}

} // namespace reckon::cuda
