//===- SelfTest.h - a device proved against the CPU device ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every kernel, a few whole plans, memory and speed, within minutes on a
// machine that may be seen once. docs/selftest.md explains the output.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_SELFTEST_SELFTEST_H
#define RECKON_RUNTIME_SELFTEST_SELFTEST_H

#include "runtime/selftest/KernelCheck.h"
#include "runtime/selftest/PlanCheck.h"
#include "runtime/selftest/StackRun.h"

#include <cstdio>
#include <functional>

namespace reckon::selftest {

struct Options {
  Sizes sizes = Sizes::Full;
  uint64_t seed = 0;
  bool kernels = true, plans = true, stacks = true; ///< which sections
  /// Where small/ and full/ lie, each with plans/ and stacks/.
  std::string plansDirectory;
  /// Seconds after which nothing new is begun; what is left then counts as
  /// failed. Shared out among the sections.
  double budgetSeconds = 450.0;
  std::FILE *out = stdout; ///< progress and table
};

/// All that the self-test found.
struct Report {
  std::string target, device, reference;
  Sizes sizes = Sizes::Full;
  uint64_t seed = 0;
  std::vector<KernelOutcome> kernels;
  std::vector<PlanOutcome> plans;
  std::vector<StackOutcome> stacks;
  /// Cases and plans for which there was no time.
  int64_t notRun = 0;
  double kernelSeconds = 0.0, planSeconds = 0.0, stackSeconds = 0.0;

  bool passed() const;
};

/// Runs the sections. Environment when there is no such device or no plan; what
/// the device does wrong stands in the report.
Result<Report> runSelfTest(const Options &options, device::Device &reference,
                           const Target &target);

/// The report as one JSON object, schema reckon.selftest/1, with a final
/// newline.
std::string reportJson(const Report &report, const std::string &version);

/// The table that a person reads.
std::string reportTable(const Report &report);

/// One line for each kernel, as its cases end.
std::string kernelLine(const std::vector<KernelOutcome> &outcomes);
std::string planLine(const PlanOutcome &outcome);
std::string stackLines(const StackOutcome &outcome);

} // namespace reckon::selftest

#endif // RECKON_RUNTIME_SELFTEST_SELFTEST_H
