//===- Roofline.h - the least work of a kernel call -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What any device must at least do for a call, from its sizes alone: the
// yardstick beside which a measured time is read.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_ROOFLINE_H
#define RECKON_RUNTIME_DEVICE_KERNELS_ROOFLINE_H

#include "runtime/device/Kernels.h"

namespace reckon::device {

struct KernelWork {
  /// Bytes moved from and to memory if every operand is read and written once,
  /// at its stored size: those that are updated count twice, parts that the
  /// kernel need not touch (padding columns that are read, a table's rows
  /// beyond the number of tokens) not at all.
  int64_t bytes = 0;
  /// Multiplications and additions in matrix products, those that matrix units
  /// can do. Attention counts the causal half, 4 D a score forward and 10 D
  /// backward (which computes the scores again).
  int64_t productFlops = 0;
  /// All other arithmetic; a root, division, exponential, logarithm or maximum
  /// counts as one.
  int64_t otherFlops = 0;

  bool operator==(const KernelWork &) const = default;
};

/// Fails as prepare() would if the call breaks the kernel's convention.
Result<KernelWork> kernelWork(Kernel kernel, const KernelCall &call);

/// What a device can do in a second, at most.
struct DeviceRates {
  double bytes = 0.0;
  double productFlops = 0.0; ///< in the call's type
  double otherFlops = 0.0;   ///< in f32, outside of matrix units
};

/// Seconds that the device needs at least: the slowest of the three.
double rooflineSeconds(const KernelWork &work, const DeviceRates &rates);

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_ROOFLINE_H
