//===- Placement.h - whether the tasks fit the plan, and their devices ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_LAUNCH_PLACEMENT_H
#define RECKON_RUNTIME_LAUNCH_PLACEMENT_H

#include "runtime/launch/RankEnv.h"

namespace reckon {

/// What a plan expects of whoever starts its ranks.
struct PlannedTasks {
  std::string plan; ///< how messages name it
  int64_t world = 1;
  int64_t nodes = 0;       ///< 0: not known
  int64_t gpusPerNode = 0; ///< ranks on each node; 0: not known
  int64_t tensorParallel = 1;
};

/// Incompatible (4), with both numbers and the options that make it right, when
/// there are more or fewer tasks than ranks, or when Slurm put another number
/// of them on a node than the plan has there. Looks at no other rank: each of
/// them finds out by itself, at once.
Status checkTasks(const RankEnv &env, const PlannedTasks &planned);

/// A warning when groups of tensor parallel ranks cross nodes; empty if not.
std::string placementWarning(const RankEnv &env, const PlannedTasks &planned);

/// Which of the devices that this task sees it shall use, from 0: the only one
/// where Slurm shows each task its own, the one of its local rank where it
/// shows all. Environment error when there are too few.
Result<int> localDevice(const Surroundings &from, int localRank);

/// OpenMP threads of a rank so that `localRanks` of them share a node's cores.
/// `usable` cores are this process's, `online` the node's: a launcher that has
/// bound each rank to cores of its own has divided them already.
int threadsPerRank(int usable, int online, int localRanks);

/// The same for this process; 0 when OMP_NUM_THREADS decides.
int threadsOfThisRank(const Surroundings &from, int localRanks);

} // namespace reckon

#endif // RECKON_RUNTIME_LAUNCH_PLACEMENT_H
