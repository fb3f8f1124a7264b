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

/// Runs `steps` steps of all ranks on made-up tokens, on the CPU device and one
/// thread a rank, and gives a digest of every weight, optimizer state and
/// metric after each step. A child process does it, so that a wrong plan takes
/// nobody with it; it is Hung after `timeout` seconds. With a seed the streams'
/// order is random, by that seed.
Outcome runPlan(const Stages &stages, int steps, std::optional<uint64_t> seed,
                double timeout);

} // namespace reckon::mutation

#endif // RECKON_TESTS_MUTATION_RUNPLAN_H
