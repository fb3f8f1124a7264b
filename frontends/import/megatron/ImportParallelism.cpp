//===- ImportParallelism.cpp - how the work is split ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/megatron/Importer.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::megatron;

/// Virtual stages of a layout string, whose own syntax the spec checks: bars
/// between them, repeated groups unrolled as Megatron does.
static int64_t countStages(const std::string &text) {
  int64_t bars = 0, group = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') {
      inside = true;
      group = 0;
    } else if (text[i] == '|') {
      ++(inside ? group : bars);
    } else if (text[i] == ')') {
      inside = false;
      int64_t times = 0;
      for (++i; i < text.size() &&
                (text[i] == '*' || (text[i] >= '0' && text[i] <= '9'));
           ++i)
        if (text[i] != '*')
          times = std::min<int64_t>(times * 10 + (text[i] - '0'), 65536);
      --i;
      bars += group * std::max<int64_t>(times, 1);
    }
  }
  return bars + 1;
}

void Importer::stages() {
  pp_ = args_.integer("--pipeline-model-parallel-size").value_or(1);
  put("parallelism.pipeline_parallel", pp_);
  bool embedding = args_.has("--account-for-embedding-in-pipeline-split");
  bool loss = args_.has("--account-for-loss-in-pipeline-split");
  std::optional<std::string> layout =
      args_.text("--pipeline-model-parallel-layout");
  std::optional<int64_t> chunk =
      args_.integer("--num-layers-per-virtual-pipeline-stage");
  std::optional<int64_t> first =
      args_.integer("--decoder-first-pipeline-num-layers");
  std::optional<int64_t> last =
      args_.integer("--decoder-last-pipeline-num-layers");
  int64_t v =
      args_.integer("--num-virtual-stages-per-pipeline-rank").value_or(1);
  int64_t units = layers_ + embedding + loss;
  auto wrong = [&](const char *flag, const std::string &what) {
    args_.error(flag, "expected the layers to divide as Megatron divides them, "
                      "got " +
                          what +
                          "; change it or give "
                          "--pipeline-model-parallel-layout");
  };
  if (pp_ < 1 || v < 1 || (chunk && *chunk < 1)) {
    wrong("--pipeline-model-parallel-size", "a number below 1");
    return;
  }
  if (layout) {
    int64_t stages = countStages(*layout);
    if (stages % pp_ != 0)
      wrong("--pipeline-model-parallel-layout",
            std::to_string(stages) + " stages for " + std::to_string(pp_) +
                " pipeline ranks");
    v = std::max<int64_t>(1, stages / pp_);
    put("parallelism.pipeline_layout", *layout, true);
  } else if (chunk) {
    if (units % (pp_ * *chunk) != 0)
      wrong("--num-layers-per-virtual-pipeline-stage",
            std::to_string(units) + " layers over " + std::to_string(pp_) +
                " ranks in chunks of " + std::to_string(*chunk));
    v = std::max<int64_t>(1, units / (pp_ * *chunk));
  }
  put("parallelism.virtual_pipeline", v);
  put("parallelism.pipeline_schedule", v > 1 ? "interleaved_1f1b" : "1f1b");
  if (layout || pp_ * v == 1)
    return;

  // Layers of a rank, then over its chunks.
  std::vector<int64_t> ranks(static_cast<size_t>(pp_), 0);
  int64_t middle = pp_ - (first ? 1 : 0) - (last ? 1 : 0);
  int64_t rest = units - first.value_or(0) - last.value_or(0);
  if (middle > 0 ? rest % middle != 0 || rest < 0 : rest != 0) {
    wrong("--num-layers", std::to_string(rest) + " layers over " +
                              std::to_string(middle) + " ranks");
    return;
  }
  std::fill(ranks.begin(), ranks.end(), middle > 0 ? rest / middle : 0);
  if (first)
    ranks.front() = *first;
  if (last)
    ranks.back() = *last;
  std::vector<int64_t> stages;
  for (int64_t c = 0; c < v; ++c)
    for (int64_t layers : ranks) {
      if (layers % v != 0) {
        wrong("--num-layers", std::to_string(layers) + " layers in " +
                                  std::to_string(v) + " chunks");
        return;
      }
      stages.push_back(layers / v);
    }
  stages.front() -= embedding;
  stages.back() -= loss;
  put("parallelism.pipeline_layout", stages);
}

void Importer::parallelism() {
  const std::string section = "parallelism.";
  put(section + "representation", "megatron");
  int64_t tp = args_.integer("--tensor-model-parallel-size").value_or(1);
  int64_t cp = args_.integer("--context-parallel-size").value_or(1);
  put(section + "tensor_parallel", tp);
  // Megatron turns it off by itself without tensor parallelism.
  put(section + "sequence_parallel",
      args_.has("--sequence-parallel") && tp > 1);
  put(section + "context_parallel", cp);
  std::string type = args_.text("--cp-comm-type").value_or("p2p");
  if (cp > 1) {
    const char *method = type == "p2p"          ? "ring"
                         : type == "all_gather" ? "all_gather"
                         : type == "a2a"        ? "all_to_all"
                                                : nullptr;
    if (!method)
      args_.error("--cp-comm-type", "expected p2p, all_gather or a2a behind "
                                    "--cp-comm-type, got " +
                                        type + "; use one of them");
    else
      put(section + "context_parallel_method", method);
  }
  stages();
  int64_t ep = args_.integer("--expert-model-parallel-size").value_or(1);
  int64_t etp = args_.integer("--expert-tensor-parallel-size").value_or(tp);
  bool experts = args_.integer("--num-experts").value_or(0) > 0;
  put(section + "expert_parallel", experts ? ep : 1);
  put(section + "expert_tensor_parallel", experts ? etp : 1);
  put(section + "zero_stage",
      int64_t{args_.has("--use-distributed-optimizer") ? 1 : 0});
  // The planner takes them for granted.
  args_.has("--overlap-grad-reduce");
  args_.has("--overlap-param-gather");
  if (std::optional<double> capacity =
          args_.real("--moe-expert-capacity-factor"))
    put(section + "moe_capacity_factor", *capacity);
  recompute();
}
