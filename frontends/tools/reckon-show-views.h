//===- reckon-show-views.h - what reckon show can print -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_RECKON_SHOW_VIEWS_H
#define RECKON_FRONTENDS_TOOLS_RECKON_SHOW_VIEWS_H

#include "passes/listing/PlanText.h"
#include "runtime/plan/Manifest.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon::show {

/// The stages of a plan directory that were asked for.
struct LoadedPlan {
  plan::Manifest manifest;
  std::vector<std::unique_ptr<plan::StagePlanT>> stages;
};

enum class Format { Text, Csv, Json, Svg, Cu, Perfetto };

/// Model, layout, streams and sizes at a glance.
std::string summary(const LoadedPlan &plan, Format format);

/// Bytes of a rank per stage by category of the contract, and per state role,
/// slot class and lane.
std::string memory(const LoadedPlan &plan, Format format);

/// Fragments and lists as a listing; with `coord`, offsets and arguments are
/// those of that rank. As `cu`, the text of plan.cu.txt for these stages.
std::string program(const LoadedPlan &plan, Format format,
                    std::optional<plan::Coord> coord);

/// Every collective and channel: who, how much, how often a step.
std::string communication(const LoadedPlan &plan, Format format);

/// When each stage runs which micro-batch, with F = 1 and B = 2 units of time
/// and messages that take none. Needs the files of all stages.
Result<std::string> schedule(const LoadedPlan &plan, Format format);

/// Bytes in use over the time of one step: a sample per change, or a picture.
/// Needs the files of all stages; shows `onlyStage` alone if it is given.
Result<std::string> timeline(const LoadedPlan &plan, Format format,
                             std::optional<unsigned> onlyStage);

/// The predicted timeline of the streams of every stage, or of `onlyStage`, as
/// a trace for ui.perfetto.dev; with `rank` the process is named after it.
/// Needs the files of all stages; `directory` is used in errors.
Result<std::string> perfetto(const LoadedPlan &plan,
                             const std::string &directory,
                             std::optional<unsigned> onlyStage,
                             std::optional<int64_t> rank);

using listing::humanBytes;

/// `text` padded with spaces to `width`, on the left for numbers.
std::string padLeft(const std::string &text, size_t width);
std::string padRight(const std::string &text, size_t width);

} // namespace reckon::show

#endif // RECKON_FRONTENDS_TOOLS_RECKON_SHOW_VIEWS_H
