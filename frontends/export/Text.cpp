//===- Text.cpp - what all targets write alike ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Text.h"

#include "passes/model/account/Representation.h"

#include <algorithm>
#include <charconv>

using namespace reckon;
using namespace reckon::exports;

std::string exports::number(double value) {
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

std::string exports::commaList(const std::vector<int64_t> &values) {
  std::string text;
  for (int64_t value : values)
    text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

std::string exports::header(Target target, const ExportInput &input,
                            const std::vector<std::string> &notExpressed) {
  std::string text =
      "# " + *input.spec.model.name + " on " + std::to_string(input.world()) +
      " devices, written by `reckon export --to " + toString(target) +
      "` for " + targetVersion(target) + ".\n";
  if (notExpressed.empty())
    return text + "# Everything in the spec is expressed.\n";
  for (const std::string &line : notExpressed)
    text += "# not expressed: " + line + "\n";
  return text;
}

bool exports::evenLayout(const std::vector<int64_t> &layout) {
  return std::all_of(layout.begin(), layout.end(),
                     [&](int64_t n) { return n == layout.front(); });
}

std::optional<int64_t> exports::recomputedLayers(const model::Choice &choice) {
  const std::vector<int64_t> &layers = choice.recomputeLayers;
  if (layers.empty())
    return std::nullopt;
  int64_t most = *std::max_element(layers.begin(), layers.end());
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i] != std::min(most, choice.layout[i]))
      return std::nullopt;
  return most;
}

/// The key that a person would change; its section where it was left open.
static SourceLoc blame(const Spec &spec, const std::string &reason) {
  const ParallelismSpec &p = spec.parallelism;
  auto names = [&](const char *word) {
    return reason.find(word) != std::string::npos;
  };
  auto at = [&](const auto &choice) {
    return choice.given ? choice.loc : p.loc;
  };
  if (names("key heads"))
    return at(p.tensorParallel);
  if (names("expert_tensor_parallel"))
    return at(p.expertTensorParallel);
  if (names("AutoEP"))
    return at(p.expertParallel);
  if (names("zero_stage"))
    return at(p.zeroStage);
  if (names("schedule") || names("1f1b"))
    return at(p.pipelineSchedule);
  if (names("sequence_parallel") || names("sequence parallel"))
    return at(p.sequenceParallel);
  if (names("all_to_all") || names("all_gather"))
    return at(p.contextParallelMethod);
  if (names("chunk"))
    return at(p.virtualPipeline);
  if (names("checkpoints"))
    return at(p.recompute);
  return p.loc;
}

void exports::refuseForbidden(Target target, const ExportInput &input,
                              Exported &out) {
  std::string why = model::representationForbids(
      representationOf(target), input.choice, input.job(target).model);
  if (!why.empty())
    out.refuse(blame(input.spec, why),
               "expected a choice that " + std::string(toString(target)) +
                   " can run, got one that it cannot: " + why +
                   "; change that key, or leave it `auto`");
}

void exports::omitCommon(const ExportInput &input, Exported &out) {
  const TrainingSpec &training = input.spec.training;
  if (training.data.given && *training.data.format == "text")
    out.omit("training.data", "a text file; build the corpus in the "
                              "framework's own format and name it there");
  if (input.spec.parallelism.moeCapacityFactor.given &&
      *input.spec.parallelism.moeCapacityFactor == 0 &&
      input.job(Target::Megatron).model.isMoe())
    out.omit("parallelism.moe_capacity_factor",
             "none only sizes buffers in Reckon; the framework grows them as "
             "tokens arrive");
}
