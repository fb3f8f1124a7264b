//===- reckon-run.cpp - the thin runtime's program ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads a plan, starts local processes when nothing else did, and runs a rank.
// Links no LLVM, no Z3 and no yaml-cpp.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Commands.h"
#include "frontends/tools/reckon-run-device.h"
#include "frontends/tools/reckon-run-rank.h"
#include "frontends/tools/reckon-run-selftest.h"
#include "runtime/launch/LocalLauncher.h"
#include "runtime/launch/Placement.h"
#include "runtime/plan/PlanIO.h"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <unistd.h>

using namespace reckon;
using namespace reckon::plan;

namespace {

/// The command line as it was written.
struct Arguments {
  std::string plan;
  std::string device = "auto";
  std::string resume = "auto";
  std::string runDirectory;
  std::string data;
  std::string initWeights;
  std::vector<std::pair<std::string, std::string>> dumps;
  int local = 0;
  int64_t steps = -1;
  SelfTestArguments selfTest;
};

void declare(CLI::App &app, Arguments &arguments) {
  app.add_option("PLAN_DIR", arguments.plan,
                 "directory written by `reckon compile`");
  app.add_option("--device", arguments.device, "where kernels run")
      ->check(CLI::IsMember({"auto", "cpu", "cuda", "cuda-emulated"}))
      ->capture_default_str();
  app.add_option("--local", arguments.local,
                 "start this many processes here (default: the plan's world "
                 "size, unless srun or RANK/WORLD_SIZE say otherwise)")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", arguments.steps,
                 "steps to run (default: training.train_steps)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--resume", arguments.resume,
                 "auto, none, or a checkpoint directory")
      ->capture_default_str();
  app.add_option("--run-dir", arguments.runDirectory,
                 "where metrics and logs go (default: runs/NAME-DIGEST)");
  app.add_option("--data", arguments.data,
                 "training text, instead of the plan's");
  app.add_option("--init-weights", arguments.initWeights,
                 "safetensors file with all parameters by global name");
  app.add_option("--dump", arguments.dumps,
                 "STEP:weights,gradients DIR: write whole tensors after a "
                 "step (0: before the first)");
  declareSelfTest(app, arguments.selfTest);
}

Status checkArguments(const Arguments &arguments) {
  if (arguments.plan.empty())
    return makeError(ExitCode::BadSpec,
                     "expected PLAN_DIR, got nothing: name a directory written "
                     "by `reckon compile`, or pass --selftest");
  if (arguments.resume != "auto" && arguments.resume != "none")
    return makeError(ExitCode::BadSpec,
                     "--resume: this version has no checkpoints, got \"" +
                         arguments.resume + "\": pass none");
  return Status::success();
}

/// A non-negative integer from the environment, or nothing.
Result<std::optional<uint64_t>> numberFromEnvironment(const char *name) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return std::optional<uint64_t>();
  char *end = nullptr;
  uint64_t value = std::strtoull(text, &end, 10);
  if (*end || *text == '-')
    return makeError(ExitCode::BadSpec, std::string(name) +
                                            ": expected a number, got \"" +
                                            text + "\"");
  return std::optional<uint64_t>(value);
}

/// A positive number of seconds from the environment, or nothing.
Result<std::optional<double>> secondsFromEnvironment(const char *name) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return std::optional<double>();
  char *end = nullptr;
  double value = std::strtod(text, &end);
  if (*end || !(value > 0))
    return makeError(ExitCode::BadSpec, std::string(name) +
                                            ": expected seconds above 0, got "
                                            "\"" +
                                            text + "\"");
  return std::optional<double>(value);
}

Result<exec::TrainOptions> trainOptions(const Arguments &arguments,
                                        const Manifest &manifest) {
  exec::TrainOptions options;
  options.planDirectory = arguments.plan;
  options.runDirectory =
      arguments.runDirectory.empty()
          ? "runs/" + manifest.name + "-" + manifest.digest.substr(0, 8)
          : arguments.runDirectory;
  options.data = arguments.data;
  options.initWeights = arguments.initWeights;
  if (arguments.steps >= 0)
    options.steps = arguments.steps;
  for (const auto &[what, directory] : arguments.dumps) {
    auto dump = exec::parseDump(what, directory);
    if (!dump)
      return dump.error();
    if (options.steps && dump->step > *options.steps)
      return makeError(ExitCode::BadSpec,
                       "--dump: expected a step up to --steps " +
                           std::to_string(*options.steps) + ", got " +
                           std::to_string(dump->step));
    options.dumps.push_back(std::move(*dump));
  }
  if (const char *text = std::getenv("RECKON_FAULT"); text && *text) {
    auto fault = fault::parseFault(text);
    if (!fault)
      return fault.error();
    options.fault = *fault;
  }
  auto seed = numberFromEnvironment("RECKON_QUEUE_SEED");
  if (!seed)
    return seed.error();
  options.queueSeed = *seed;
  auto trace = numberFromEnvironment("RECKON_TRACE");
  if (!trace)
    return trace.error();
  options.trace = trace->value_or(0) != 0;
  auto limit = secondsFromEnvironment("RECKON_HANG_LIMIT_S");
  if (!limit)
    return limit.error();
  options.hangLimit = *limit;
  auto profile = numberFromEnvironment("RECKON_PROFILE");
  if (!profile)
    return profile.error();
  options.profile = profile->value_or(0) != 0;
  options.terminal = isatty(STDOUT_FILENO) != 0;
  return options;
}

/// "tp 2, pp 2"; empty for a single rank.
std::string describeMesh(const MeshT &mesh) {
  std::string text;
  for (Axis axis : kRankOrder)
    if (axisSize(mesh, axis) > 1)
      text += (text.empty() ? "" : ", ") + std::string(axisName(axis)) + " " +
              std::to_string(axisSize(mesh, axis));
  return text;
}

void announce(const Manifest &manifest, const exec::TrainOptions &options) {
  int64_t world = worldSize(manifest.mesh);
  std::string mesh = describeMesh(manifest.mesh);
  std::fprintf(
      options.out, "training %s on %lld process%s%s, run directory %s\n",
      manifest.name.c_str(), static_cast<long long>(world),
      world == 1 ? "" : "es", mesh.empty() ? "" : (" (" + mesh + ")").c_str(),
      options.runDirectory.c_str());
  std::fflush(options.out);
}

/// Starts the plan's ranks on this machine and waits for them.
int runLocally(int argc, char **argv, const Manifest &manifest,
               const exec::TrainOptions &options) {
  // Reading every stage here gives one error instead of one a rank.
  for (unsigned stage = 0; stage < manifest.stages.size(); ++stage) {
    auto plan =
        readPlanStage(systemFiles(), options.planDirectory, manifest, stage);
    if (!plan)
      return reportError(plan.error());
  }
  announce(manifest, options);
  LocalLaunch launch;
  launch.argv.assign(argv, argv + argc);
  launch.world = static_cast<int>(worldSize(manifest.mesh));
  Result<int> code = launchLocal(launch);
  return code ? *code : reportError(code.error());
}

int runMain(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Runs a compiled plan.", "reckon-run");
  declare(app, arguments);
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  if (!arguments.selfTest.target.empty())
    return runSelfTest(arguments.selfTest);
  if (Status status = checkArguments(arguments); !status.ok())
    return reportError(status.error());
  auto manifest = readPlanManifest(systemFiles(), arguments.plan);
  if (!manifest)
    return reportError(manifest.error());
  auto options = trainOptions(arguments, *manifest);
  if (!options)
    return reportError(options.error());
  auto env = readRankEnv();
  if (!env)
    return reportError(env.error());

  int64_t world = worldSize(manifest->mesh);
  std::string needs = arguments.plan + " needs " + std::to_string(world) +
                      (world == 1 ? " rank" : " ranks");
  if (arguments.local > 0 && arguments.local != world)
    return reportError(makeError(
        ExitCode::BadSpec, "--local: " + needs + ", got " +
                               std::to_string(arguments.local) +
                               ": pass --local " + std::to_string(world)));
  if (*env) {
    const PlannedTasks planned{arguments.plan, world, manifest->cluster.nodes,
                               manifest->cluster.gpusPerNode,
                               manifest->mesh.tp};
    if (Status fits = checkTasks(**env, planned); !fits)
      return refuseRank(**env, *manifest, *options, fits.error());
    std::string warning = placementWarning(**env, planned);
    if (!warning.empty() && (*env)->rank == 0)
      std::fprintf(stderr, "reckon-run: warning: %s\n", warning.c_str());
  }
  if (options->fault && options->fault->rank >= world)
    return reportError(
        makeError(ExitCode::BadSpec, "RECKON_FAULT: expected a rank below " +
                                         std::to_string(world) + ", got " +
                                         std::to_string(options->fault->rank)));
  // Local processes choose for themselves: their parent would keep a context.
  if (!*env && (world > 1 || arguments.local > 0))
    return runLocally(argc, argv, *manifest, *options);
  ChosenDevice device = chooseDevice(arguments.device, *manifest);
  if (!device.why.empty() && (!*env || (*env)->rank == 0))
    std::fprintf(stderr, "reckon-run: note: running on the CPU: %s\n",
                 device.why.c_str());
  if (*env)
    return runRank(**env, *manifest, device.kind, std::move(*options));
  announce(*manifest, *options);
  return runRank(RankEnv{}, *manifest, device.kind, std::move(*options));
}

} // namespace

int main(int argc, char **argv) { return runMain(argc, argv); }
