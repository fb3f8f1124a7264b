//===- reckon-show-summary.cpp - a plan at a glance -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-views.h"

#include <nlohmann/json.hpp>

#include <cstdio>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::show;

std::string reckon::show::padLeft(const std::string &text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text
                             : text;
}

std::string reckon::show::padRight(const std::string &text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ')
                             : text;
}

namespace {

/// What one stage holds and runs.
struct StageFacts {
  int64_t parameters = 0; ///< elements on one rank
  size_t instructions = 0, collectives = 0, actions = 0;
};

StageFacts facts(const StagePlanT &stage) {
  StageFacts result;
  Coord coord;
  coord.pp = stage.stage;
  for (const auto &state : stage.states) {
    if (state->role != Role::parameter)
      continue;
    int64_t elements = 1;
    for (const auto &extent : state->box)
      elements *= evalExpr(extent->size, coord);
    result.parameters += elements;
  }
  for (const auto &fragment : stage.fragments)
    for (const auto &op : fragment->instructions) {
      ++result.instructions;
      result.collectives += op->op == Opcode::all_reduce ||
                            op->op == Opcode::all_gather ||
                            op->op == Opcode::reduce_scatter;
    }
  for (const auto &list : stage.lists)
    result.actions += list->actions.size();
  return result;
}

/// "  predicted   5.70 s a step (...), 735499 tokens/s, MFU 32.6 %\n", or
/// empty.
std::string predictionLine(const Prediction &prediction) {
  if (!prediction.known())
    return "";
  char text[192];
  std::snprintf(text, sizeof text,
                "  predicted   %.4g s a step (pipeline %.4g, update %.4g, host "
                "%.4g), %.0f tokens/s, MFU %.1f %%\n",
                prediction.step, prediction.pipeline, prediction.update,
                prediction.overhead, prediction.tokensPerSecond,
                100 * prediction.mfu);
  return text;
}

} // namespace

std::string reckon::show::summary(const LoadedPlan &plan, Format format) {
  const Manifest &manifest = plan.manifest;
  const StagePlanT &first = *plan.stages.front();
  const MeshT &mesh = manifest.mesh;
  if (format == Format::Json) {
    nlohmann::json json = {{"name", manifest.name},
                           {"digest", manifest.digest},
                           {"world_size", worldSize(mesh)},
                           {"mesh",
                            {{"tp", mesh.tp},
                             {"cp", mesh.cp},
                             {"ep", mesh.ep},
                             {"dp", mesh.dp},
                             {"pp", mesh.pp}}},
                           {"precision", first.precision},
                           {"sequence_length", first.sequence_length},
                           {"micro_batch_size", first.micro_batch_size},
                           {"num_micro_batches", first.num_micro_batches},
                           {"global_batch_size", first.global_batch_size},
                           {"choice", manifest.choice}};
    if (manifest.prediction.known())
      json["prediction"] = predictionJson(manifest.prediction);
    for (const auto &stage : plan.stages) {
      StageFacts f = facts(*stage);
      json["stages"].push_back({{"stage", stage->stage},
                                {"arena_bytes", stage->arena_bytes},
                                {"parameters_per_rank", f.parameters},
                                {"instructions", f.instructions},
                                {"collectives", f.collectives},
                                {"actions", f.actions}});
    }
    return json.dump(2) + "\n";
  }
  auto n = [](auto value) { return std::to_string(value); };
  std::string text = "plan " + manifest.name + "  " + manifest.digest + "\n";
  text += "  ranks       " + n(worldSize(mesh)) + " = tp " + n(mesh.tp) +
          " x cp " + n(mesh.cp) + " x ep " + n(mesh.ep) + " x dp " +
          n(mesh.dp) + " x pp " + n(mesh.pp) + "  (tp fastest)\n";
  text += "  step        " + n(first.global_batch_size) + " sequences of " +
          n(first.sequence_length) + " tokens: " + n(first.num_micro_batches) +
          " micro-batches of " + n(first.micro_batch_size) + " on each of " +
          n(mesh.dp) + " replicas\n";
  text += "  precision   " + first.precision + ", seed " + n(first.seed) + "\n";
  text += predictionLine(manifest.prediction);
  text += "  compiled by reckon " + manifest.reckonVersion + ", plan format " +
          n(manifest.planFormat) + "\n\n";
  text += "  stage  parameters a rank        arena  instructions  collectives"
          "  actions a step\n";
  for (const auto &stage : plan.stages) {
    StageFacts f = facts(*stage);
    text += padLeft(n(stage->stage), 7) + padLeft(n(f.parameters), 19) +
            padLeft(humanBytes(stage->arena_bytes), 13) +
            padLeft(n(f.instructions), 14) + padLeft(n(f.collectives), 13) +
            padLeft(n(f.actions), 16) + "\n";
  }
  return text + "\nmore: --what memory, schedule, comm, program\n";
}
