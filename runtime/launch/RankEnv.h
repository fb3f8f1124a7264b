//===- RankEnv.h - which rank this process is -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// From RANK, WORLD_SIZE and their companions, as the local launcher, torchrun
// and the like set them, or from Slurm's variables under srun. Where the ranks
// meet is taken from RECKON_MASTER_ADDR and RECKON_MASTER_PORT, then from
// MASTER_ADDR and MASTER_PORT, then from Slurm.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_LAUNCH_RANKENV_H
#define RECKON_RUNTIME_LAUNCH_RANKENV_H

#include "runtime/comm/Rendezvous.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

struct RankEnv {
  int rank = 0;
  int world = 1;
  int localRank = 0;
  int localWorld = 1;
  /// Address for WorldOptions::master; empty for a world of one.
  std::string master;
  /// Run id: equal on all ranks, different between jobs and restarts.
  std::string nonce;
  /// This rank's node: Slurm's name for it, else the host's.
  std::string node;
  /// "17.0" (Slurm's job and step) and how often it was restarted.
  std::string job;
  int restarts = 0;
  /// Under Slurm: the step's nodes and how many tasks each has.
  std::vector<std::string> nodes;
  std::vector<int> tasksPerNode;

  /// Node of any rank; empty when not known.
  std::string nodeOf(int rank) const;
  /// "rank 3 (n2)", or "rank 3" when its node is not known.
  std::string describe(int rank) const;
};

/// The process's surroundings; tests pass their own.
struct Surroundings {
  std::function<std::optional<std::string>(const char *)> variable;
  std::function<bool(const std::string &)> resolves;
  std::string hostName;
};
const Surroundings &systemSurroundings();

/// Nothing when the process was started alone. BadSpec (2) names a variable
/// that is missing or no number of its range; Environment (5) when no meeting
/// place can be derived.
Result<std::optional<RankEnv>>
readRankEnv(const Surroundings &from = systemSurroundings());

/// Options for joinWorld(), with RECKON_TRANSPORT and RECKON_MEET_LIMIT_S (how
/// many seconds ranks wait for each other at the start; 60) applied.
Result<comm::WorldOptions> worldOptions(const RankEnv &env);

} // namespace reckon

#endif // RECKON_RUNTIME_LAUNCH_RANKENV_H
