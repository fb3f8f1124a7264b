//===- RunPlan.cpp - executes a plan with all its ranks in a child process ===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/mutation/RunPlan.h"

#include "runtime/comm/Communicator.h"
#include "runtime/comm/CpuCommunicator.h"
#include "runtime/device/CpuDevice.h"
#include "runtime/exec/Interpreter.h"
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

Status runRank(const StagePlanT &plan, comm::Communicator &communicator,
               int steps, std::optional<uint64_t> seed, std::string &digest) {
  auto device = device::makeCpuDevice({.threads = 1, .isa = {}});
  if (!device)
    return device.error();
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
  if (seed)
    options.queueSeed = *seed + (uint64_t(communicator.rank()) << 32);
  exec::Interpreter interpreter(**program, communicator, **device,
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
        std::memcpy(bytes + state->offset, scalars, sizeof scalars);
    RECKON_TRY(interpreter.run(*list));
    for (const auto &state : plan.states)
      if (state->role != Role::gradient && state->role != Role::buffer) {
        // The padding behind a part means nothing.
        int64_t own = dtypeSize(state->dtype);
        for (const auto &extent : state->box)
          own *= evalExpr(extent->size, coord);
        own = std::min(own, static_cast<int64_t>(state->bytes));
        results +=
            digestHex({reinterpret_cast<const char *>(bytes) + state->offset,
                       static_cast<size_t>(own)});
      }
  }
  RECKON_TRY(communicator.finish());
  digest = digestHex(results);
  return Status::success();
}

/// All ranks as threads of this process.
Result<std::string> runWorld(const Stages &stages, int steps,
                             std::optional<uint64_t> seed) {
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
      comm::Communicator &communicator = *(*communicators)[at];
      const StagePlanT &plan =
          *stages[static_cast<size_t>(coordOf(mesh, rank).pp)];
      runs[at].status =
          runRank(plan, communicator, steps, seed, runs[at].digest);
      if (!runs[at].status)
        communicator.abort(runs[at].status.error());
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
                          std::optional<uint64_t> seed, double timeout) {
  int ends[2];
  if (pipe(ends) != 0)
    return {Outcome::Failed, "no pipe", 0};
  double start = systemClock().seconds();
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    Result<std::string> result = runWorld(stages, steps, seed);
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
