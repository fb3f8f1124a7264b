//===- Target.h - what the self-test tests --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_TARGET_H
#define RECKON_RUNTIME_SELFTEST_TARGET_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/StreamDevice.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace reckon::selftest {

/// The device's memory; nothing where it has none of its own, or does not say.
std::optional<device::DeviceMemory> memoryOf(device::Device &device);

/// How to get at the device under test.
struct Target {
  std::string kind; ///< "cuda", "cuda-emulated", "cpu"
  /// A new device; the one before must be gone. A device runs one plan.
  std::function<Result<std::unique_ptr<device::Device>>()> makeDevice;
  std::function<std::optional<device::DeviceMemory>(device::Device &)> memory =
      memoryOf;
  /// The communicator that a run on several such devices would use, around one
  /// that has not started; may be empty.
  std::function<std::unique_ptr<comm::Communicator>(
      std::unique_ptr<comm::Communicator> control)>
      makeCommunicator;
};

/// A new device with the one stream that calls outside of a plan go to.
Result<std::unique_ptr<device::Device>> openDevice(const Target &target);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_TARGET_H
