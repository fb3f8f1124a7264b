//===- LaunchScript.cpp - launch.sbatch -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/LaunchScript.h"

namespace reckon {
namespace {

// slurmd runs a copy from its spool, so that $0 says nothing.
constexpr char kFindPlan[] = R"(
plan=${RECKON_PLAN_DIR:-}
if [ -z "$plan" ]; then
  # This runs as a copy in a spool folder; Slurm's record has the first path.
  script=$(scontrol show job "${SLURM_JOB_ID:?expected to run under sbatch}" |
    sed -n 's/^ *Command=//p' | head -n 1)
  case $script in
  */launch.sbatch*) plan=${script%/launch.sbatch*} ;;
  */*) plan=${script%/*} ;;
  *) plan= ;;
  esac
  case $plan in
  '' | /*) ;;
  *) plan=$SLURM_SUBMIT_DIR/$plan ;;
  esac
fi
if [ ! -f "$plan/manifest.json" ]; then
  echo "launch.sbatch: expected a plan directory, got '$plan' (no" \
    "manifest.json); set RECKON_PLAN_DIR, on a file system of all nodes" >&2
  exit 5
fi
)";

constexpr char kFindRun[] = R"(
run=${RECKON_RUN:-reckon-run}
if ! command -v "$run" >/dev/null; then
  echo "launch.sbatch: expected reckon-run on PATH or in RECKON_RUN, got" \
    "'$run'; add its folder to PATH in cluster.slurm.setup" >&2
  exit 5
fi
)";

/// Slurm takes any name, but not every name survives a #SBATCH line.
std::string jobName(const std::string &name) {
  std::string out;
  for (char c : name) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    out += plain ? c : '_';
  }
  return out.empty() ? "reckon" : out;
}

} // namespace

std::string launchScript(const ClusterSpec &cluster, const std::string &name) {
  const SlurmSpec &slurm = cluster.slurm;
  std::string nodes = std::to_string(*cluster.nodes);
  std::string perNode = std::to_string(*cluster.gpusPerNode);

  std::string text = "#!/bin/bash\n"
                     "# Runs this plan: sbatch PLAN_DIR/launch.sbatch "
                     "[reckon-run's options]\n";
  auto option = [&](const std::string &line) {
    text += "#SBATCH " + line + "\n";
  };
  auto named = [&](const char *key, const Field<std::string> &field) {
    if (!field->empty())
      option(std::string("--") + key + "=" + *field);
  };
  option("--job-name=" + jobName(name));
  option("--nodes=" + nodes);
  option("--ntasks-per-node=" + perNode);
  if (!cluster.accelerator->isCpu()) {
    option("--gpus-per-node=" + perNode);
    option("--exclusive");
  }
  named("partition", slurm.partition);
  named("account", slurm.account);
  named("qos", slurm.qos);
  named("time", slurm.time);
  for (const std::string &line : *slurm.extra)
    option(line.rfind("#SBATCH ", 0) == 0 ? line.substr(8) : line);

  if (!slurm.setup->empty())
    text += "\n" + *slurm.setup + "\n";
  text += kFindPlan;
  text += kFindRun;
  // Nothing here binds GPUs: each task sees all of its node's and takes that of
  // its local rank, since NCCL reaches a peer over NVLink only where it may
  // open the peer's device. (--gpu-bind=none would take them away from Slurm's
  // step.) One failing rank ends the step; the ranks' status files tell which.
  text += "\nexec srun --kill-on-bad-exit=1 --nodes=" + nodes +
          " --ntasks-per-node=" + perNode;
  for (const std::string &argument : *slurm.srunArgs)
    text += " \\\n  " + argument;
  text += " \\\n  \"$run\" \"$plan\" \"$@\"\n";
  return text;
}

} // namespace reckon
