//===- reckon-run-device.h - which device a run uses ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_RECKON_RUN_DEVICE_H
#define RECKON_FRONTENDS_TOOLS_RECKON_RUN_DEVICE_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"
#include "runtime/launch/RankEnv.h"
#include "runtime/plan/Manifest.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// A device by the name that --device knows, and why it was taken.
struct ChosenDevice {
  std::string kind; ///< cpu, cuda or cuda-emulated
  std::string why;  ///< for auto: what spoke against a GPU, else empty
};

/// What --device means for this plan on this machine. auto takes a GPU when the
/// plan is for one and there is one; it never fails.
ChosenDevice chooseDevice(const std::string &asked,
                          const plan::Manifest &manifest);

/// What a rank runs on.
struct Machine {
  std::unique_ptr<device::Device> device;
  /// What makes of a rank's communicator one for this device; null for cpu,
  /// where it stays as it is.
  std::function<std::unique_ptr<comm::Communicator>(
      std::unique_ptr<comm::Communicator>)>
      wrap;
  std::vector<std::string> log; ///< lines for the rank's log
};

/// Opens the device for a plan of so many streams; `seed` orders an emulated
/// one.
Result<Machine> openMachine(const std::string &kind, const RankEnv &env,
                            int threads, size_t streams,
                            std::optional<uint64_t> seed);

} // namespace reckon

#endif // RECKON_FRONTENDS_TOOLS_RECKON_RUN_DEVICE_H
