//===- StackRun.h - memory and speed of a large stack ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_STACKRUN_H
#define RECKON_RUNTIME_SELFTEST_STACKRUN_H

#include "runtime/selftest/CallTimes.h"
#include "runtime/selftest/Target.h"
#include "runtime/selftest/Training.h"

#include <string>
#include <vector>

namespace reckon::selftest {

/// A step's speed, measured or predicted.
struct Speed {
  double stepSeconds = 0.0;
  double tokensPerSecond = 0.0;
  double tflops = 0.0; ///< of the model, not of the hardware
  double mfu = 0.0;    ///< fraction of the plan's peak
};

/// Device memory beside the arena, by what it was taken for.
struct MemoryItem {
  std::string name;
  int64_t bytes = 0;
};

/// What became of one stack.
struct StackOutcome {
  std::string name, precision, accelerator;
  int64_t layers = 0;
  int64_t tokensPerStep = 0;
  int64_t plannedBytes = 0, allocatedBytes = 0; ///< of the arena
  int64_t reserveBytes = -1; ///< the plan's for what is below; -1: no plan's
  std::vector<MemoryItem> memory; ///< empty without memory of its own
  int64_t steps = 0;              ///< timed, after those that warm up
  double loss = 0.0;              ///< of the last step, in nats
  Speed measured;
  std::optional<Speed> predicted;
  std::vector<CallTime> calls;
  double setUpSeconds = 0.0, seconds = 0.0;
  std::string fault; ///< what is wrong; empty: nothing
  bool passed() const { return fault.empty(); }

  int64_t besideArena() const;
};

/// For each precision, the plan with most layers that fits into the device's
/// free memory; only plans for the accelerator whose name the device's contains
/// ("h200-sxm" and "NVIDIA H200"), or all of them if none is.
std::vector<const LoadedPlan *>
chooseStacks(const std::vector<LoadedPlan> &plans, const std::string &device,
             std::optional<device::DeviceMemory> memory);

/// Trains it for a few steps, then times its kernels one by one.
StackOutcome runStack(const LoadedPlan &plan, const Target &target,
                      const Scratch &scratch, double secondsForSteps,
                      double secondsForKernels);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_STACKRUN_H
