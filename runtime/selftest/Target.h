//===- Target.h - what the self-test tests --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_TARGET_H
#define RECKON_RUNTIME_SELFTEST_TARGET_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace reckon::selftest {

/// The device's memory, used by whom ever.
struct DeviceMemory {
  int64_t free = 0;  ///< bytes
  int64_t total = 0; ///< bytes
};

/// How to get at the device under test.
struct Target {
  std::string kind; ///< "cuda", "cuda-emulated", "cpu"
  /// A new device; the one before must be gone. A device runs one plan.
  std::function<Result<std::unique_ptr<device::Device>>()> makeDevice;
  /// Nothing where the device has no memory of its own.
  std::function<std::optional<DeviceMemory>()> memory = [] {
    return std::optional<DeviceMemory>();
  };
  /// The communicator that a run on several such devices would use, around one
  /// that has not started; may be empty.
  std::function<Result<std::unique_ptr<comm::Communicator>>(
      comm::Communicator &control, device::Device &device)>
      makeCommunicator;
};

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_TARGET_H
