//===- LaunchScript.h - launch.sbatch -------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_LAUNCHSCRIPT_H
#define RECKON_FRONTENDS_TOOLS_LAUNCHSCRIPT_H

#include "frontends/spec/Spec.h"

#include <string>

namespace reckon {

/// Its name within a plan directory.
inline constexpr const char *kLaunchScript = "launch.sbatch";

/// A batch script for sbatch that runs the plan which it lies beside: a task a
/// rank on `cluster`'s nodes, with the options of cluster.slurm. It names no
/// folder, so that the same spec gives the same bytes everywhere. Arguments of
/// the script go to reckon-run.
std::string launchScript(const ClusterSpec &cluster, const std::string &name);

} // namespace reckon

#endif // RECKON_FRONTENDS_TOOLS_LAUNCHSCRIPT_H
