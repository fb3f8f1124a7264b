//===- reckon-run-rank.cpp - one process of a run -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/reckon-run-rank.h"

#include "runtime/comm/Rendezvous.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/plan/PlanIO.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace reckon;
using namespace reckon::plan;

namespace {

std::atomic<bool> stopRequested = false;
std::atomic<bool> stepping = false;

/// Between steps the loop looks at the flag within milliseconds; before, and
/// for someone who asks twice, there is nothing worth waiting for.
void onStopSignal(int) {
  if (!stepping || stopRequested.exchange(true))
    _exit(static_cast<int>(ExitCode::Interrupted));
}

void catchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = onStopSignal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &both, nullptr);
}

/// The longest segment list that the plan posts.
uint32_t longestMessage(const StagePlanT &plan) {
  size_t longest = 64;
  for (const auto &fragment : plan.fragments)
    for (const auto &instruction : fragment->instructions)
      longest = std::max(longest, instruction->inputs.size());
  for (const auto &list : plan.lists)
    for (const auto &action : list->actions)
      longest = std::max(longest, action->buffers.size());
  return static_cast<uint32_t>(longest);
}

/// What must be the same on all ranks beside the plan, or they would wait for
/// each other in different places.
std::string commonOptions(const exec::TrainOptions &options) {
  std::string text = "steps " + std::to_string(options.steps.value_or(-1));
  for (const exec::DumpRequest &dump : options.dumps)
    text += ", dump " + std::to_string(dump.step) +
            (dump.weights ? " weights" : "") +
            (dump.gradients ? " gradients" : "");
  return text + (options.initWeights.empty() ? "" : ", with weights");
}

Status trainRank(comm::Communicator &communicator, const Manifest &manifest,
                 const StagePlanT &plan, exec::TrainOptions options,
                 int *failedRank) {
  RECKON_TRY(communicator.agree("plan", manifest.digest));
  RECKON_TRY(communicator.agree("options", commonOptions(options)));
  auto device = device::makeCpuDevice();
  if (!device)
    return device.error();
  std::FILE *out = options.out;
  std::string directory = options.runDirectory;
  exec::Trainer trainer(manifest, plan, communicator, **device, systemFiles(),
                        systemClock(), std::move(options));
  Status status = trainer.setUp();
  *failedRank = trainer.failedRank();
  if (!status.ok())
    return status;
  stepping = true;
  status = trainer.run();
  if (status.ok())
    status = communicator.finish();
  trainer.recordEnd(status);
  if (!status.ok() && status.error().code != ExitCode::DeadPeer)
    trainer.abort(status.error());
  if (status.ok() && communicator.rank() == 0)
    std::fprintf(out, "done; see %s/metrics.jsonl\n", directory.c_str());
  return status;
}

} // namespace

int reckon::reportError(const Error &error, int rank) {
  std::string who = rank < 0 ? "" : "rank " + std::to_string(rank) + ": ";
  std::fprintf(stderr, "reckon-run: %s%s\n", who.c_str(),
               error.message.c_str());
  return static_cast<int>(error.code);
}

int reckon::runRank(const RankEnv &env, const Manifest &manifest,
                    exec::TrainOptions options) {
  catchStopSignals();
  Coord coord = coordOf(manifest.mesh, env.rank);
  auto plan = readPlanStage(systemFiles(), options.planDirectory, manifest,
                            static_cast<unsigned>(coord.pp));
  if (!plan)
    return reportError(plan.error(), env.rank);
  auto world = worldOptions(env);
  if (!world)
    return reportError(world.error(), env.rank);
  world->maxSegments = longestMessage(**plan);
  auto communicator = comm::joinWorld(*world);
  if (!communicator)
    return reportError(communicator.error(), env.rank);
  if (options.queueSeed)
    *options.queueSeed += static_cast<uint64_t>(env.rank) << 32;
  options.stop = &stopRequested;

  int failedRank = -1;
  Status status = trainRank(**communicator, manifest, **plan,
                            std::move(options), &failedRank);
  if (status.ok())
    return static_cast<int>(ExitCode::Done);
  // One voice for what all ranks know.
  bool interrupted = status.error().code == ExitCode::Interrupted;
  int speaker = failedRank >= 0 ? failedRank : interrupted ? 0 : env.rank;
  if (speaker != env.rank)
    return static_cast<int>(status.error().code);
  return reportError(status.error(), env.rank);
}
