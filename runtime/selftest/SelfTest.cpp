//===- SelfTest.cpp - a device proved against the CPU device --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/SelfTest.h"

#include <algorithm>

namespace reckon::selftest {

namespace {

/// Shares of the budget: after these parts of it a section begins nothing new.
constexpr double kKernelsUntil = 0.35;
constexpr double kPlansUntil = 0.6;
/// Of what is left, for one stack's steps and for timing its kernels.
constexpr double kStepShare = 0.3;
constexpr double kCallShare = 0.1;

class SelfTest {
public:
  SelfTest(const Options &options, device::Device &reference,
           const Target &target, Report &report)
      : options_(options), reference_(reference), target_(target),
        report_(report), start_(systemClock().seconds()) {}

  Status run();

private:
  double spent() const { return systemClock().seconds() - start_; }
  bool late(double share) const {
    return spent() > share * options_.budgetSeconds;
  }
  void say(const std::string &text) {
    std::fputs(text.c_str(), options_.out);
    std::fflush(options_.out);
  }
  std::string folder(const char *what) const {
    return options_.plansDirectory +
           (options_.sizes == Sizes::Full ? "/full/" : "/small/") + what;
  }

  Status kernels();
  Status plans();
  Status stacks();

  const Options &options_;
  device::Device &reference_;
  const Target &target_;
  Report &report_;
  double start_;
  std::optional<device::DeviceMemory> memory_; ///< before anything runs
};

Status SelfTest::run() {
  report_.target = target_.kind;
  report_.reference = reference_.name();
  report_.sizes = options_.sizes;
  report_.seed = options_.seed;
  {
    auto device = target_.makeDevice();
    if (!device)
      return device.error();
    report_.device = (*device)->name();
    memory_ = target_.memory(**device);
  }
  say("self-test of " + report_.device + "\nagainst " + report_.reference +
      ", " + (options_.sizes == Sizes::Full ? "full" : "small") +
      " sizes, seed " + std::to_string(options_.seed) + "\n");
  auto section = [&](bool wanted, Status (SelfTest::*body)(), double &seconds) {
    if (!wanted)
      return Status::success();
    double begin = spent();
    Status status = (this->*body)();
    seconds = spent() - begin;
    return status;
  };
  RECKON_TRY(
      section(options_.kernels, &SelfTest::kernels, report_.kernelSeconds));
  RECKON_TRY(section(options_.plans, &SelfTest::plans, report_.planSeconds));
  return section(options_.stacks, &SelfTest::stacks, report_.stackSeconds);
}

Status SelfTest::kernels() {
  std::vector<KernelCase> cases = kernelCases(options_.sizes);
  say("\nkernels, " + std::to_string(cases.size()) +
      " cases: error as a fraction of the tolerance\n");
  auto device = openDevice(target_);
  if (!device)
    return device.error();
  auto checker =
      KernelChecker::create(reference_, **device, options_.seed, cases);
  if (!checker)
    return checker.error();
  std::vector<KernelOutcome> same;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (late(kKernelsUntil)) {
      report_.notRun += static_cast<int64_t>(cases.size() - i);
      say("  out of time: " + std::to_string(cases.size() - i) +
          " cases not run\n");
      break;
    }
    same.push_back((*checker)->check(cases[i]));
    report_.kernels.push_back(same.back());
    if (i + 1 == cases.size() || cases[i + 1].kernel != cases[i].kernel) {
      say(kernelLine(same));
      same.clear();
    }
  }
  return Status::success();
}

Status SelfTest::plans() {
  auto plans = loadPlans(folder("plans"));
  if (!plans)
    return plans.error();
  auto scratch = Scratch::create();
  if (!scratch)
    return scratch.error();
  say("\nplans, " + std::to_string(kPlanSteps) +
      " steps: differences relative to the CPU device's\n");
  for (const LoadedPlan &plan : *plans) {
    if (late(kPlansUntil)) {
      ++report_.notRun;
      say("  " + plan.name + ": out of time, not run\n");
      continue;
    }
    report_.plans.push_back(checkPlan(plan, reference_, target_, **scratch));
    say(planLine(report_.plans.back()));
  }
  return Status::success();
}

Status SelfTest::stacks() {
  auto plans = loadPlans(folder("stacks"));
  if (!plans)
    return plans.error();
  auto scratch = Scratch::create();
  if (!scratch)
    return scratch.error();
  std::vector<const LoadedPlan *> chosen =
      chooseStacks(*plans, report_.device, memory_);
  if (chosen.empty())
    return makeError(ExitCode::Environment,
                     folder("stacks") +
                         ": expected a plan that fits into the device's free "
                         "memory, got none; end what else runs on it");
  say("\nmemory and speed\n");
  for (size_t i = 0; i < chosen.size(); ++i) {
    double left = options_.budgetSeconds - spent();
    if (left <= 0) {
      ++report_.notRun;
      say("  " + chosen[i]->name + ": out of time, not run\n");
      continue;
    }
    left /= static_cast<double>(chosen.size() - i);
    // Small stacks run where speed says nothing.
    if (options_.sizes == Sizes::Small)
      left = std::min(left, 10.0);
    report_.stacks.push_back(runStack(*chosen[i], target_, **scratch,
                                      kStepShare * left, kCallShare * left));
    say(stackLines(report_.stacks.back()));
  }
  return Status::success();
}

} // namespace

bool Report::passed() const {
  auto good = [](const auto &outcome) { return outcome.passed(); };
  return notRun == 0 && std::all_of(kernels.begin(), kernels.end(), good) &&
         std::all_of(plans.begin(), plans.end(), good) &&
         std::all_of(stacks.begin(), stacks.end(), good);
}

Result<Report> runSelfTest(const Options &options, device::Device &reference,
                           const Target &target) {
  Report report;
  RECKON_TRY(SelfTest(options, reference, target, report).run());
  return report;
}

} // namespace reckon::selftest
