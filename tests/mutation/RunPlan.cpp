//===- RunPlan.cpp - executes a plan with all its ranks in a child process ===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/mutation/RunPlan.h"

#include "runtime/comm/Communicator.h"
#include "runtime/comm/CpuCommunicator.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/NcclCommunicator.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/exec/Executor.h"
#include "runtime/exec/LearningRate.h"
#include "runtime/exec/StateInit.h"
#include "runtime/plan/PlanIO.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace reckon;
using namespace reckon::mutation;
using namespace reckon::plan;

namespace {

/// Tokens that depend on step, micro-batch, replica and position only.
class MadeUpBatches : public exec::BatchSource {
public:
  MadeUpBatches(const StagePlanT &plan, const Coord &coord)
      : plan_(plan), coord_(coord) {}

  Status load(uint32_t microbatch, bool targets,
              std::span<int32_t> out) override {
    std::seed_seq seeds{uint32_t(step), microbatch, uint32_t(coord_.dp),
                        uint32_t(targets)};
    std::mt19937 random(seeds);
    for (int32_t &token : out)
      token = static_cast<int32_t>(random() % plan_.vocab_size);
    return Status::success();
  }

  int step = 0;

private:
  const StagePlanT &plan_;
  Coord coord_;
};

struct RankRun {
  Status status;
  std::string digest;
};

/// The device, and for CUDA the communicator that belongs to it.
Result<std::unique_ptr<device::Device>>
open(RunDevice kind, std::optional<uint64_t> seed,
     std::unique_ptr<comm::Communicator> &communicator) {
  if (kind == RunDevice::Cpu)
    return device::makeCpuDevice({.threads = 1, .isa = {}});
  if (seed)
    cuda::setSeed(*seed);
  auto device = cuda::makeCudaDevice({});
  if (!device)
    return device.error();
  communicator = std::make_unique<cuda::NcclCommunicator>(
      std::move(communicator), cuda::NcclOptions{});
  return std::unique_ptr<device::Device>(std::move(*device));
}

Status runRank(const StagePlanT &plan, RunDevice kind,
               std::unique_ptr<comm::Communicator> &own, int steps,
               std::optional<uint64_t> seed, std::string &digest) {
  if (seed)
    *seed += uint64_t(own->rank()) << 32;
  auto device = open(kind, seed, own);
  if (!device)
    return device.error();
  comm::Communicator &communicator = *own;
  Coord coord = coordOf(*plan.mesh, communicator.rank());
  auto connections = exec::connectStage(plan, coord, communicator);
  Status status = connections.status();
  RECKON_TRY(status);
  RECKON_TRY(communicator.start());
  auto arena = (*device)->allocateArena(static_cast<int64_t>(plan.arena_bytes));
  if (!arena)
    return arena.error();
  auto *bytes = static_cast<std::byte *>(*arena);
  RECKON_TRY(exec::initStates(plan, coord, **device, bytes, nullptr));
  auto program =
      exec::StageProgram::bind(plan, coord, *connections, **device, bytes);
  if (!program)
    return program.error();
  exec::BoundList *list = (*program)->list("step");
  MadeUpBatches batches(plan, coord);
  exec::ExecutorOptions options;
  options.queueSeed = seed;
  auto executor = exec::makeExecutor(**program, communicator, **device,
                                     systemClock(), batches, options);
  std::string results;
  for (int step = 1; step <= steps; ++step) {
    double scalars[4] = {
        exec::learningRate(*plan.optimizer, static_cast<uint64_t>(step)),
        1 - std::pow(plan.optimizer->beta1, step),
        1 - std::pow(plan.optimizer->beta2, step), double(step)};
    batches.step = step;
    for (const auto &state : plan.states)
      if (state->role == Role::scalars)
        RECKON_TRY((*device)->copyToDevice(bytes + state->offset, scalars,
                                           sizeof scalars));
    RECKON_TRY(executor->run(*list));
    RECKON_TRY((*device)->synchronize());
    for (const auto &state : plan.states)
      if (state->role != Role::gradient && state->role != Role::buffer) {
        // The padding behind a part means nothing.
        int64_t own = dtypeSize(state->dtype);
        for (const auto &extent : state->box)
          own *= evalExpr(extent->size, coord);
        own = std::min(own, static_cast<int64_t>(state->bytes));
        std::string part(static_cast<size_t>(own), 0);
        RECKON_TRY(
            (*device)->copyToHost(part.data(), bytes + state->offset, own));
        results += digestHex(part);
      }
  }
  RECKON_TRY(communicator.finish());
  digest = digestHex(results);
  return Status::success();
}

/// All ranks as threads of this process.
Result<std::string> runWorld(const Stages &stages, int steps,
                             std::optional<uint64_t> seed, RunDevice device) {
  const MeshT &mesh = *stages[0]->mesh;
  int world = static_cast<int>(worldSize(mesh));
  auto communicators = comm::makeLocalWorld(world, {});
  if (!communicators)
    return communicators.error();
  std::vector<RankRun> runs(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      auto at = static_cast<size_t>(rank);
      std::unique_ptr<comm::Communicator> &communicator = (*communicators)[at];
      const StagePlanT &plan =
          *stages[static_cast<size_t>(coordOf(mesh, rank).pp)];
      runs[at].status =
          runRank(plan, device, communicator, steps, seed, runs[at].digest);
      if (!runs[at].status)
        communicator->abort(runs[at].status.error());
    });
  for (std::thread &thread : threads)
    thread.join();
  std::string results;
  for (const RankRun &run : runs) {
    RECKON_TRY(run.status);
    results += run.digest;
  }
  return digestHex(results);
}

} // namespace

Outcome mutation::runPlan(const Stages &stages, int steps,
                          std::optional<uint64_t> seed, double timeout,
                          RunDevice device) {
  int ends[2];
  if (pipe(ends) != 0)
    return {Outcome::Failed, "no pipe", 0};
  double start = systemClock().seconds();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    Result<std::string> result = runWorld(stages, steps, seed, device);
    std::string text =
        result ? "+" + *result : "-" + result.error().message.substr(0, 400);
    ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  Outcome outcome;
  std::string text;
  bool timedOut = false;
  while (true) {
    double left = timeout - (systemClock().seconds() - start);
    pollfd ready{ends[0], POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left * 1000) + 1) == 0) {
      timedOut = true;
      break;
    }
    char buffer[1024];
    ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got <= 0)
      break;
    text.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  if (timedOut)
    kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.seconds = systemClock().seconds() - start;
  if (timedOut)
    outcome.end = Outcome::Hung;
  else if (text.empty())
    outcome.end = Outcome::Crashed;
  else
    outcome.end = text[0] == '+' ? Outcome::Done : Outcome::Failed;
  if (!text.empty())
    outcome.text = text.substr(1);
  return outcome;
}
