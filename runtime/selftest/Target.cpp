//===- Target.cpp - what the self-test tests ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/Target.h"

namespace reckon::selftest {

std::optional<device::DeviceMemory> memoryOf(device::Device &device) {
  device::StreamDevice *streams = device.asStreams();
  if (!streams)
    return std::nullopt;
  auto memory = streams->memory();
  return memory ? std::optional(*memory) : std::nullopt;
}

Result<std::unique_ptr<device::Device>> openDevice(const Target &target) {
  auto device = target.makeDevice();
  if (!device)
    return device;
  const std::string streams[] = {"compute"};
  if (device::StreamDevice *own = (*device)->asStreams())
    RECKON_TRY(own->openStreams(streams));
  return device;
}

} // namespace reckon::selftest
