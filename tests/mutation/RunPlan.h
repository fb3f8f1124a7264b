//===- RunPlan.h - executes a plan with all its ranks in a child process --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_MUTATION_RUNPLAN_H
#define RECKON_TESTS_MUTATION_RUNPLAN_H

#include "tests/mutation/Mutations.h"

#include <optional>
#include <string>

namespace reckon::mutation {

/// How an execution ended.
struct Outcome {
  enum End { Done, Failed, Hung, Crashed };
  End end = Failed;
  std::string text; ///< Done: the digest of all ranks' results; else why
  double seconds = 0;

  bool operator==(const Outcome &other) const {
    return end == other.end && (end != Done || text == other.text);
  }
};

/// Where a plan is executed: the Interpreter on the CPU device, or the
/// StreamExecutor on emulated CUDA devices with emulated NCCL.
enum class RunDevice { Cpu, CudaEmulated };

/// Runs `steps` steps of all ranks on made-up tokens, one thread a rank, and
/// gives a digest of every weight, optimizer state and metric after each step.
/// A child process does it, so that a wrong plan takes nobody with it; it is
/// Hung after `timeout` seconds. With a seed the streams' order is random, by
/// that seed.
Outcome runPlan(const Stages &stages, int steps, std::optional<uint64_t> seed,
                double timeout, RunDevice device = RunDevice::Cpu);

} // namespace reckon::mutation

#endif // RECKON_TESTS_MUTATION_RUNPLAN_H
