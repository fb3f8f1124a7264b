//===- Megatron.cpp - Megatron-LM arguments -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Megatron.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::exports;

/// For a shell: brackets, bars and stars are not for it.
static std::string quoted(const std::string &value) {
  bool plain = std::all_of(value.begin(), value.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           c == '/' || c == '+';
  });
  return plain ? value : "'" + value + "'";
}

std::string ArgumentList::text(const std::string &indent) const {
  std::string text;
  for (const Line &line : lines_) {
    text += indent + line.flag;
    if (!line.value.empty())
      text += " " + quoted(line.value);
    text += "\n";
  }
  return text;
}

/// What the rest of the job needs beside the arguments: ranks, environment.
static std::string launchScript(const ExportInput &input,
                                const ArgumentList &list,
                                const std::string &top) {
  const ClusterSpec &cluster = input.spec.cluster;
  const model::Choice &choice = input.choice;
  std::string text = "#!/bin/bash\n" + top +
                     "# Start it on every node, in a checkout of Megatron-LM. "
                     "The arguments are those of\n# megatron.args.\n"
                     "set -eu\n";
  // Megatron asserts it before Blackwell when TP or CP is on: it makes the
  // order of kernels in the device's queue the order of their launches.
  if (choice.tp > 1 || choice.cp > 1)
    text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  text += "ARGUMENTS=(\n" + list.text("  ") + ")\n";
  text += "torchrun --nnodes " + std::to_string(*cluster.nodes) +
          " --nproc-per-node " + std::to_string(*cluster.gpusPerNode) +
          " \\\n"
          "  --node-rank \"${NODE_RANK:-${SLURM_NODEID:-0}}\" \\\n"
          "  --master-addr \"${MASTER_ADDR:-127.0.0.1}\" "
          "--master-port \"${MASTER_PORT:-29500}\" \\\n"
          "  pretrain_gpt.py \"${ARGUMENTS[@]}\" \"$@\"\n";
  return text;
}

Exported exports::exportMegatron(const ExportInput &input) {
  Exported out;
  refuseForbidden(Target::Megatron, input, out);
  ArgumentList list;
  addModel(input, list, out);
  addTraining(input, list, out);
  addParallelism(input, list, out);
  omitCommon(input, out);
  std::string top = header(Target::Megatron, input, out.notExpressed);
  out.files.push_back({"megatron.args", top + list.text("")});
  out.files.push_back({"megatron.sh", launchScript(input, list, top)});
  return out;
}
