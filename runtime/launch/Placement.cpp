//===- Placement.cpp - whether the tasks fit the plan, and their devices --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/launch/Placement.h"

#include <algorithm>
#include <sched.h>
#include <unistd.h>

namespace reckon {
namespace {

std::string number(int64_t value, const char *noun) {
  return std::to_string(value) + " " + noun + (value == 1 ? "" : "s");
}

/// "srun -N 2 --ntasks-per-node=4".
std::string remedy(const PlannedTasks &planned) {
  if (planned.nodes <= 0 || planned.gpusPerNode <= 0)
    return "start " + number(planned.world, "task");
  return "use srun -N " + std::to_string(planned.nodes) +
         " --ntasks-per-node=" + std::to_string(planned.gpusPerNode);
}

} // namespace

Status checkTasks(const RankEnv &env, const PlannedTasks &planned) {
  bool slurm = !env.tasksPerNode.empty();
  std::string needs = planned.plan + " needs " + number(planned.world, "rank");
  if (env.world != planned.world)
    return makeError(ExitCode::Incompatible,
                     needs + ", got " + number(env.world, "task") + " from " +
                         (slurm ? "Slurm; " + remedy(planned)
                                : "WORLD_SIZE; start as many as it needs"));
  if (!slurm || planned.gpusPerNode <= 0)
    return Status();
  int64_t wanted = std::min(planned.gpusPerNode, planned.world);
  for (size_t node = 0; node < env.tasksPerNode.size(); ++node)
    if (env.tasksPerNode[node] != wanted)
      return makeError(ExitCode::Incompatible,
                       needs + ", " + std::to_string(wanted) +
                           " on each node (cluster.gpus_per_node), got " +
                           number(env.tasksPerNode[node], "task") + " on " +
                           (node < env.nodes.size()
                                ? env.nodes[node]
                                : "node " + std::to_string(node)) +
                           "; " + remedy(planned));
  return Status();
}

std::string placementWarning(const RankEnv &env, const PlannedTasks &planned) {
  // Tensor parallel ranks are the fastest axis, so groups are blocks of ranks.
  int64_t size = planned.tensorParallel;
  int64_t begin = 0;
  for (size_t node = 0; node + 1 < env.tasksPerNode.size(); ++node) {
    begin += env.tasksPerNode[node];
    if (size > 1 && begin % size != 0)
      return "tensor_parallel " + std::to_string(size) + " with " +
             number(env.tasksPerNode[node], "task") +
             " on a node: its groups cross nodes, and each layer waits for "
             "the network";
  }
  return "";
}

Result<int> localDevice(const Surroundings &from, int localRank) {
  std::optional<std::string> visible = from.variable("CUDA_VISIBLE_DEVICES");
  if (!visible)
    return localRank;
  int64_t count = 0;
  // "NoDevFiles" and "-1" are how Slurm and CUDA say: none.
  if (!visible->empty() && *visible != "NoDevFiles" && visible->front() != '-')
    count = 1 + std::count(visible->begin(), visible->end(), ',');
  if (count == 1)
    return 0;
  if (localRank < count)
    return localRank;
  return makeError(
      ExitCode::Environment,
      "expected a device for local rank " + std::to_string(localRank) +
          ", got " + number(count, "device") + " (CUDA_VISIBLE_DEVICES='" +
          *visible + "'); ask for --gpus-per-node as many as tasks");
}

int threadsPerRank(int usable, int online, int localRanks) {
  localRanks = std::max(localRanks, 1);
  bool bound = usable < online && usable <= online / localRanks;
  return std::max(1, bound ? usable : usable / localRanks);
}

int threadsOfThisRank(const Surroundings &from, int localRanks) {
  if (from.variable("OMP_NUM_THREADS").value_or("") != "")
    return 0;
  auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  int usable =
      ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : online;
  return threadsPerRank(usable, online, localRanks);
}

} // namespace reckon
