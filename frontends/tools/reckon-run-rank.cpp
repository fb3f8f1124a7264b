//===- reckon-run-rank.cpp - one process of a run -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/reckon-run-rank.h"

#include "frontends/tools/reckon-run-device.h"
#include "runtime/comm/Rendezvous.h"
#include "runtime/comm/Wire.h"
#include "runtime/launch/Placement.h"
#include "runtime/launch/StatusFile.h"
#include "runtime/plan/PlanIO.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace reckon;
using namespace reckon::plan;

namespace {

std::atomic<bool> stopRequested = false;
std::atomic<bool> stepping = false;
std::atomic<bool> decided = false;
std::atomic<int64_t> firstStopNs = 0;
std::atomic<const StatusFile *> openStatus = nullptr;

/// Slurm's TERM may come twice, two seconds apart.
constexpr int64_t kSameStopNs = 3'000'000'000;

/// Between steps the loop looks at the flag within milliseconds; before, and
/// for someone who asks twice, there is nothing worth waiting for.
void onStopSignal(int signal) {
  if (decided) // a signal during the end does not change what it is
    return;
  int saved = errno;
  int64_t now = comm::nowNs();
  if (stepping && !stopRequested.exchange(true)) {
    firstStopNs = now;
    return;
  }
  if (stepping && signal == SIGTERM && now - firstStopNs < kSameStopNs) {
    errno = saved;
    return;
  }
  if (const StatusFile *status = openStatus)
    status->writeInterrupted();
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
std::string commonOptions(const exec::TrainOptions &options,
                          const std::string &device) {
  std::string text = "device " + device + ", steps " +
                     std::to_string(options.steps.value_or(-1));
  for (const exec::DumpRequest &dump : options.dumps)
    text += ", dump " + std::to_string(dump.step) +
            (dump.weights ? " weights" : "") +
            (dump.gradients ? " gradients" : "");
  const char *transport = std::getenv("RECKON_TRANSPORT");
  return text + (options.initWeights.empty() ? "" : ", with weights") +
         (transport && *transport ? std::string(", over ") + transport : "");
}

/// Two builds of one version may still speak differently to each other.
std::string programVersion() {
  auto bytes = systemFiles().read("/proc/self/exe");
  return std::string(RECKON_VERSION) + ", plan format " +
         std::to_string(kPlanFormat) + ", build " +
         (bytes ? digestHex(*bytes).substr(0, 16) : "not known");
}

/// Whoever tells a job to end may do so because a rank of it died, and then
/// the death is the verdict. Rank 0 sees every death at once; the others give
/// it the time to say what it saw.
Error settle(comm::Communicator &communicator, const Error &interrupted) {
  comm::Deadline deadline(communicator.rank() == 0 ? 0.1 : 2.5);
  while (!deadline.passed()) {
    Result<bool> moved = communicator.progress();
    if (!moved)
      return moved.error();
    if (!*moved)
      communicator.idle();
  }
  return interrupted;
}

/// Until a peer is gone, at most two seconds: the rank that failed should also
/// be the first to end, for a launcher names the first.
void waitForTheEndOfOthers(comm::Communicator &communicator) {
  double deadline = systemClock().seconds() + 2;
  while (systemClock().seconds() < deadline) {
    Result<bool> progressed = communicator.progress();
    if (!progressed)
      break;
    if (!*progressed)
      communicator.idle();
  }
  usleep(100'000); // its connections close before it has ended
}

Status trainRank(std::unique_ptr<comm::Communicator> &own, const RankEnv &env,
                 const Manifest &manifest, const StagePlanT &plan,
                 const std::string &deviceKind, exec::TrainOptions options,
                 int *failedRank, int64_t *completed) {
  RECKON_TRY(own->agree("plan", manifest.digest));
  RECKON_TRY(own->agree("program", programVersion()));
  RECKON_TRY(own->agree("options", commonOptions(options, deviceKind)));
  auto machine = openMachine(
      deviceKind, env, threadsOfThisRank(systemSurroundings(), env.localWorld),
      plan.streams.size(), options.queueSeed);
  RECKON_TRY(exec::agreeOnStatus(*own, machine.status(), failedRank));
  if (machine->wrap)
    own = machine->wrap(std::move(own));
  comm::Communicator &communicator = *own;
  options.logLines = machine->log;
  std::FILE *out = options.out;
  std::string directory = options.runDirectory;
  exec::Trainer trainer(manifest, plan, communicator, *machine->device,
                        systemFiles(), systemClock(), std::move(options));
  Status status = trainer.setUp();
  *failedRank = trainer.failedRank();
  if (!status.ok())
    return status;
  stepping = true;
  status = trainer.run();
  if (status.ok())
    status = communicator.finish();
  else if (status.error().code == ExitCode::Interrupted)
    status = settle(communicator, status.error());
  decided = true;
  *completed = trainer.completed();
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

int reckon::refuseRank(const RankEnv &env, const Manifest &manifest,
                       const exec::TrainOptions &options, const Error &error) {
  if (auto file = StatusFile::open(env, manifest.digest, options.runDirectory))
    file->write({error.code, error.message, std::nullopt, 0});
  return reportError(error, env.rank);
}

int reckon::runRank(const RankEnv &env, const Manifest &manifest,
                    const std::string &deviceKind, exec::TrainOptions options) {
  auto file = StatusFile::open(env, manifest.digest, options.runDirectory);
  if (!file)
    return reportError(file.error(), env.rank);
  openStatus = &*file;
  catchStopSignals();
  auto end = [&](const Status &status, int speaker, int64_t completed) {
    decided = true;
    if (status.ok()) {
      file->write({ExitCode::Done, "done", std::nullopt, completed});
      return static_cast<int>(ExitCode::Done);
    }
    const Error &error = status.error();
    file->write(
        {error.code, error.message, comm::blamedRank(error), completed});
    return speaker == env.rank ? reportError(error, env.rank)
                               : static_cast<int>(error.code);
  };

  Coord coord = coordOf(manifest.mesh, env.rank);
  auto plan = readPlanStage(systemFiles(), options.planDirectory, manifest,
                            static_cast<unsigned>(coord.pp));
  if (!plan)
    return end(plan.error(), env.rank, 0);
  auto world = worldOptions(env);
  if (!world)
    return end(world.error(), env.rank, 0);
  world->maxSegments = longestMessage(**plan);
  auto communicator = comm::joinWorld(*world);
  if (!communicator)
    return end(communicator.error(), env.rank, 0);
  if (options.queueSeed)
    *options.queueSeed += static_cast<uint64_t>(env.rank) << 32;
  options.stop = &stopRequested;

  int failedRank = -1;
  int64_t completed = 0;
  Status status = trainRank(*communicator, env, manifest, **plan, deviceKind,
                            std::move(options), &failedRank, &completed);
  // One voice for what all ranks know.
  bool interrupted =
      !status.ok() && status.error().code == ExitCode::Interrupted;
  int speaker = failedRank >= 0 ? failedRank : interrupted ? 0 : env.rank;
  if (failedRank >= 0 && speaker != env.rank)
    waitForTheEndOfOthers(**communicator);
  return end(status, speaker, completed);
}
