//===- CallTimes.h - how long each kernel call of a plan takes ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_CALLTIMES_H
#define RECKON_RUNTIME_SELFTEST_CALLTIMES_H

#include "runtime/device/Device.h"
#include "runtime/plan/PlanIO.h"

#include <string>
#include <vector>

namespace reckon::selftest {

/// A launch as a plan makes it, apart from where its operands lie.
struct PlannedCall {
  device::Kernel kernel = device::Kernel::None;
  std::vector<device::Operand> inputs, outputs;
  std::vector<int64_t> args;
  std::vector<double> floats;
  int64_t perStep = 0; ///< how often a step makes it

  device::KernelCall call() const { return {inputs, outputs, args, floats}; }
  /// The narrowest type of its operands: that of activations and parameters.
  device::DType storage() const;
  /// "linear bf16 [16777216] 14336,4096": kernel, storage, elements of the
  /// first operand, arguments.
  std::string text() const;
};

/// The different launches of list `step`, at rank 0, by kernel.
std::vector<PlannedCall> plannedCalls(const plan::StagePlanT &plan);

/// What an accelerator can do at most, by the type of a product's operands; 0:
/// not known.
struct Peaks {
  double f32 = 0.0, bf16 = 0.0, f8 = 0.0; ///< FLOP/s; f32 also of the rest
  double bandwidth = 0.0;                 ///< of its memory, bytes/s
};

/// A call's measured time beside what the peaks allow.
struct CallTime {
  PlannedCall call;
  double seconds = 0.0;  ///< of one
  double roofline = 0.0; ///< least seconds of one; 0 where peaks are not known
};

/// Times every call on `device`, which has not run anything: with operands of
/// made-up values in an arena of their own, back to back, by the device's own
/// clock where it has one. `secondsEach` bounds the time for one call.
Result<std::vector<CallTime>> timeCalls(device::Device &device,
                                        const std::vector<PlannedCall> &calls,
                                        const Peaks &peaks, double secondsEach);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_CALLTIMES_H
