//===- reckon-run-selftest.cpp - reckon-run --selftest --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/reckon-run-selftest.h"

#include "frontends/tools/reckon-run-rank.h"
#include "runtime/cuda/PluginLoader.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/selftest/SelfTest.h"

#include <algorithm>
#include <filesystem>
#include <random>

using namespace reckon;

namespace {

/// Of any plan of the self-test.
constexpr unsigned kStreams = 8;
constexpr const char *kSections[] = {"kernels", "plans", "stacks"};

/// ../share/reckon/selftest beside the folder of the program.
std::string installedPlans() {
  std::error_code error;
  auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "share/reckon/selftest")
      .string();
}

selftest::Target cpuTarget() {
  selftest::Target target;
  target.kind = "cpu";
  target.makeDevice = [] { return device::makeCpuDevice(); };
  return target;
}

/// The first GPU that this process sees, or the emulated one, whose threads and
/// streams `seed` orders.
Result<selftest::Target> cudaTarget(const std::string &kind, uint64_t seed) {
  auto plugin = cuda::loadPlugin(kind == "cuda" ? cuda::PluginKind::Cuda
                                                : cuda::PluginKind::Emulated);
  if (!plugin)
    return plugin.error();
  (void)(*plugin)->prepareEnvironment(kStreams);
  selftest::Target target;
  target.kind = kind;
  target.makeDevice =
      [=, plugin = *plugin]() -> Result<std::unique_ptr<device::Device>> {
    cuda::PluginOptions options;
    options.seed = seed;
    auto device = plugin->makeDevice(options);
    if (!device)
      return device.error();
    return std::unique_ptr<device::Device>(std::move(*device));
  };
  target.makeCommunicator =
      [plugin = *plugin](std::unique_ptr<comm::Communicator> control) {
        return plugin->makeCommunicator(std::move(control));
      };
  return target;
}

} // namespace

void reckon::declareSelfTest(CLI::App &app, SelfTestArguments &arguments) {
  app.add_option("--selftest", arguments.target,
                 "instead of a plan: prove this device against the CPU "
                 "device, measure it, and end")
      ->check(CLI::IsMember({"cuda", "cuda-emulated", "cpu"}));
  app.add_option("--selftest-out", arguments.out,
                 "where the self-test writes its JSON")
      ->capture_default_str();
  app.add_option("--selftest-sizes", arguments.sizes,
                 "full for a GPU, small for an emulated one")
      ->check(CLI::IsMember({"small", "full"}))
      ->capture_default_str();
  app.add_option("--selftest-seed", arguments.seed,
                 "of the operands (default: a fresh one, which is printed)");
  app.add_option("--selftest-plans", arguments.plans,
                 "folder of its plans (default: "
                 "../share/reckon/selftest beside this program)");
  app.add_option("--selftest-sections", arguments.sections,
                 "kernels, plans, stacks: only these")
      ->delimiter(',')
      ->check(CLI::IsMember({kSections[0], kSections[1], kSections[2]}));
}

int reckon::runSelfTest(const SelfTestArguments &arguments) {
  auto wanted = [&](const char *section) {
    return arguments.sections.empty() ||
           std::find(arguments.sections.begin(), arguments.sections.end(),
                     section) != arguments.sections.end();
  };
  selftest::Options options;
  options.sizes = arguments.sizes == "full" ? selftest::Sizes::Full
                                            : selftest::Sizes::Small;
  options.kernels = wanted(kSections[0]);
  options.plans = wanted(kSections[1]);
  options.stacks = wanted(kSections[2]);
  options.plansDirectory =
      arguments.plans.empty() ? installedPlans() : arguments.plans;
  options.seed = arguments.seed.value_or(std::random_device()());

  auto target = arguments.target == "cpu"
                    ? Result<selftest::Target>(cpuTarget())
                    : cudaTarget(arguments.target, options.seed);
  if (!target)
    return reportError(target.error());
  auto reference = device::makeCpuDevice();
  if (!reference)
    return reportError(reference.error());
  auto report = selftest::runSelfTest(options, **reference, *target);
  if (!report)
    return reportError(report.error());
  std::fputs(selftest::reportTable(*report).c_str(), options.out);
  if (Status written = systemFiles().write(
          arguments.out, selftest::reportJson(*report, RECKON_VERSION));
      !written)
    return reportError(written.error());
  std::fprintf(options.out, "see %s\n", arguments.out.c_str());
  return static_cast<int>(report->passed() ? ExitCode::Done
                                           : ExitCode::Internal);
}
