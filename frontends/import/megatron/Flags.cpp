//===- Flags.cpp - the arguments that Megatron-LM knows -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/megatron/Flags.h"

#include "frontends/spec/Suggest.h"

#include <vector>

using namespace reckon;
using namespace reckon::megatron;

static constexpr std::string_view kTable =
#include "frontends/import/megatron/FlagData.inc"
    ;

static std::map<std::string, Arity, std::less<>> readTable() {
  std::map<std::string, Arity, std::less<>> flags;
  std::string_view rest = kTable;
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    size_t tab = line.find('\t');
    if (tab == std::string_view::npos)
      continue;
    std::string_view count = line.substr(tab + 1);
    Arity arity;
    if (count == "+")
      arity = {1, -1};
    else if (count == "*")
      arity = {0, -1};
    else
      arity.least = arity.most = count[0] - '0';
    flags.emplace(std::string(line.substr(0, tab)), arity);
  }
  return flags;
}

static const std::map<std::string, Arity, std::less<>> &table() {
  static const auto flags = readTable();
  return flags;
}

std::optional<Arity> megatron::findFlag(std::string_view flag) {
  auto found = table().find(flag);
  if (found == table().end())
    return std::nullopt;
  return found->second;
}

std::string megatron::nearestFlag(std::string_view flag) {
  std::vector<std::string> names;
  for (const auto &[name, arity] : table())
    names.push_back(name);
  return nearestWord(flag, names);
}

const std::map<std::string, std::string, std::less<>> &
megatron::refusedFlags() {
  const char *dense = "the spec has no such layers; describe the model by hand";
  const char *state = "the planner knows fp32 main weights, gradients and "
                      "moments only; remove it";
  const char *offload = "the planner keeps everything on the device; remove it";
  const char *fsdp = "use --use-distributed-optimizer, or write the spec with "
                     "zero_stage 3 by hand";
  static const std::map<std::string, std::string, std::less<>> flags = {
      {"--hybrid-layer-pattern", dense},
      {"--hybrid-override-pattern", dense},
      {"--heterogeneous-layers-config-path", dense},
      {"--heterogeneous-layers-config-encoded-json", dense},
      {"--window-size", dense},
      {"--experimental-attention-variant", dense},
      {"--squared-relu", dense},
      {"--quick-geglu", dense},
      {"--encoder-num-layers", "use --num-layers"},
      {"--decoder-num-layers", "use --num-layers"},
      {"--mtp-use-repeated-layer", dense},
      {"--moe-shared-expert-gate", dense},
      {"--moe-expert-rank-capacity-factor", "use --moe-expert-capacity-factor"},
      {"--rampup-batch-size", "use one --global-batch-size"},
      {"--step-batch-size-schedule", "use one --global-batch-size"},
      {"--yaml-cfg", "give the arguments themselves"},
      {"--use-megatron-fsdp", fsdp},
      {"--use-torch-fsdp2", fsdp},
      {"--use-precision-aware-optimizer", state},
      {"--cpu-offloading-num-layers", offload},
      {"--optimizer-cpu-offload", offload},
      {"--fine-grained-activation-offloading", offload},
      {"--num-distributed-optimizer-instances",
       "the planner shards over all replicas; remove it"},
      {"--hierarchical-context-parallel-sizes", "use one --cp-comm-type"},
      {"--hybrid-context-parallel", "remove it"},
      {"--tensor-parallel-num-weight-shards", "remove it"},
      {"--expert-tensor-parallel-num-weight-shards", "remove it"},
      {"--distribute-saved-activations", "use --sequence-parallel"},
      {"--fp4-format", "use --fp8-format or --bf16"},
      {"--use-tp-pp-dp-mapping",
       "the planner orders ranks tp, cp, ep, dp, pp; remove it"},
  };
  return flags;
}
