//===- Device.h - where a plan's bytes live and its kernels run -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The interpreter sees devices only through this interface. Memory is one
// arena per device: the plan's layout is static, so nothing else is ever
// allocated for operands.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_DEVICE_H
#define RECKON_RUNTIME_DEVICE_DEVICE_H

#include "runtime/device/Kernels.h"
#include "runtime/device/kernels/CounterRng.h"

#include <memory>
#include <string>

namespace reckon::device {

class StreamDevice;

class Device {
public:
  virtual ~Device() = default;

  /// This device as one that orders its own work, or null.
  virtual StreamDevice *asStreams() { return nullptr; }

  /// What the device is, for logs: "cpu (avx512, 2 threads)".
  virtual std::string name() const = 0;
  /// Host threads that one kernel may use.
  virtual int threads() const = 0;

  /// Allocates the arena: resident, aligned to 2 MiB, holding anything. At most
  /// one may be alive. Fails with ExitCode::Environment when the memory is not
  /// there.
  virtual Result<void *> allocateArena(int64_t bytes) = 0;
  virtual void freeArena() = 0;
  /// Bytes asked for in the arena that is alive, or 0.
  virtual int64_t arenaBytes() const = 0;

  /// Copies between host memory and device memory, and within the latter.
  /// Done when the call returns.
  virtual Status copyToDevice(void *to, const void *from, int64_t bytes) = 0;
  virtual Status copyToHost(void *to, const void *from, int64_t bytes) = 0;
  virtual Status copyWithin(void *to, const void *from, int64_t bytes) = 0;

  /// Fills with zero bytes. Done when the call returns.
  virtual Status zero(void *to, int64_t bytes) = 0;

  /// Fills device memory with elements [first, first + count) of a tensor's
  /// random numbers, stored as f32 or bf16 (rounded to nearest even): the same
  /// bits on every device. They are there after the next synchronize(). Without
  /// an implementation of its own a device gets them from the host.
  virtual Status fillNormal(void *to, DType dtype, const NormalStream &normal,
                            int64_t first, int64_t count);

  /// Waits until every kernel that was run has ended, and reports its errors.
  virtual Status synchronize() = 0;

  /// Checks a call against the conventions of Kernels.h and gets it ready.
  /// A call that breaks them fails with ExitCode::Incompatible, one that this
  /// device cannot run with ExitCode::Environment.
  virtual Result<std::unique_ptr<PreparedKernel>>
  prepare(Kernel kernel, const KernelCall &call) = 0;

  /// Memory beside the arena that prepared kernels share for intermediates.
  virtual int64_t workspaceBytes() const = 0;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_DEVICE_H
