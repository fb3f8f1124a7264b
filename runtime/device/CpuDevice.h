//===- CpuDevice.h - the processor as a device ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_CPUDEVICE_H
#define RECKON_RUNTIME_DEVICE_CPUDEVICE_H

#include "runtime/device/Device.h"

#include <optional>
#include <string>

namespace reckon::device {

struct CpuDeviceOptions {
  /// OpenMP threads of one kernel; 0 means omp_get_max_threads(). Another
  /// number is set for the process, for oneDNN shares its threads.
  int threads = 0;
  /// baseline, avx2 or avx512. Without one: RECKON_ISA from the environment if
  /// it is set, else the best that this machine has.
  std::optional<std::string> isa;
};

/// Fails with ExitCode::BadSpec for an unknown instruction set and with
/// ExitCode::Environment for one that the machine lacks. One interpreter
/// thread may use the device at a time.
Result<std::unique_ptr<Device>> makeCpuDevice(CpuDeviceOptions options = {});

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_CPUDEVICE_H
