//===- LocalLauncher.h - N ranks on one machine ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Starts copies of the running program, one a rank, waits for them, and decides
// what the job's exit code is. The rank that failed first decides; a rank that
// only reports the death of another (exit 42) never hides the one that died.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_LAUNCH_LOCALLAUNCHER_H
#define RECKON_RUNTIME_LAUNCH_LOCALLAUNCHER_H

#include "runtime/launch/ProcessLauncher.h"

#include <cstdio>

namespace reckon {

struct LocalLaunch {
  /// Command line of every rank; argv[0] is only a name.
  std::vector<std::string> argv;
  int world = 1;
  /// Further "NAME=value" for every rank.
  std::vector<std::string> environment;
  /// After the first failure the others may end by themselves for this long,
  /// then get SIGTERM, and after as long again SIGKILL.
  int graceMs = 5000;
};

/// Environment of one rank: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// RECKON_MASTER_ADDR and RECKON_RUN_NONCE for readRankEnv(); OMP_NUM_THREADS
/// = max(1, cores / world) and OMP_WAIT_POLICY=passive unless they are set.
std::vector<std::string> rankEnvironment(const LocalLaunch &launch, int rank,
                                         const std::string &nonce, int cores);

/// Runs the job to its end and returns its exit code: 0 when every rank ended
/// with 0; 42 when a rank was killed by a signal, whose name, host and pid go
/// to `err`; the code of the rank that failed first otherwise; after SIGINT or
/// SIGTERM 21, or 20 when ranks saved. A second such signal kills the ranks.
Result<int> launchLocal(const LocalLaunch &launch, ProcessLauncher &launcher,
                        std::FILE *err);

/// The same with processes of this machine, reporting to stderr.
Result<int> launchLocal(const LocalLaunch &launch);

} // namespace reckon

#endif // RECKON_RUNTIME_LAUNCH_LOCALLAUNCHER_H
