//===- PlanCheck.h - whole training steps against the CPU's ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_PLANCHECK_H
#define RECKON_RUNTIME_SELFTEST_PLANCHECK_H

#include "runtime/selftest/Target.h"
#include "runtime/selftest/Training.h"

#include <string>
#include <vector>

namespace reckon::selftest {

/// Steps that a plan is trained for.
inline constexpr int64_t kPlanSteps = 3;

/// How far a device's training may be from the CPU's, both relative. A tensor's
/// gradient after the first step, from the same weights, counts by the norm of
/// the difference over max(its norm, 1e-3 * the norm of all); a step's loss by
/// its value.
struct PlanTolerance {
  double gradient = 0.0;
  double loss = 0.0;
};
PlanTolerance planTolerance(const std::string &precision);

/// What became of one plan.
struct PlanOutcome {
  std::string name, precision, recompute;
  int64_t plannedBytes = 0;             ///< of the arena
  int64_t allocatedBytes = 0;           ///< by the device
  std::vector<double> losses, expected; ///< of each step, in nats
  double gradient = 0.0; ///< largest difference of any tensor, relative
  double loss = 0.0;     ///< largest difference of any step, relative
  std::string tensor;    ///< the one with the largest difference
  double seconds = 0.0;
  std::string fault; ///< what is wrong; empty: nothing
  bool passed() const { return fault.empty(); }
};

/// Trains the plan on the CPU device and twice on the device under test.
PlanOutcome checkPlan(const LoadedPlan &plan, device::Device &reference,
                      const Target &target, const Scratch &scratch);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_PLANCHECK_H
