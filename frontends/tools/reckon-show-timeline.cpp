//===- reckon-show-timeline.cpp - memory over the time of a step ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Replays the action lists of the files: a slot counts from the action that
// acquires it to the one that releases it, a lane while a fragment runs, as far
// as that fragment uses it. What is drawn is what the ranks will hold.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/reckon-show-timetable.h"
#include "frontends/tools/reckon-show-views.h"
#include "passes/report/MemoryCurves.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::show;

namespace {

constexpr std::array<const char *, 6> series = {"parameters",    "gradients",
                                                "optimizer",     "activations",
                                                "communication", "workspace"};
constexpr std::array<const char *, series.size()> colours = {
    "#4e79a7", "#f28e2b", "#76b7b2", "#e15759", "#b07aa1", "#9c9c9c"};
using Levels = std::array<uint64_t, series.size()>;

size_t seriesOf(std::string_view category) {
  for (size_t i = 0; i < series.size(); ++i)
    if (category == series[i])
      return i;
  return series.size() - 1;
}

size_t seriesOf(Role role) {
  switch (role) {
  case Role::parameter:
    return 0;
  case Role::gradient:
    return 1;
  case Role::main_weight:
  case Role::momentum:
  case Role::variance:
    return 2;
  default:
    return series.size() - 1;
  }
}

/// Bytes in use from one moment on.
struct Sample {
  int time = 0;
  std::string label; ///< of the action that begins or ends here
  Levels levels{};
  uint64_t total() const {
    uint64_t sum = 0;
    for (uint64_t level : levels)
      sum += level;
    return sum;
  }
};

struct StageTimeline {
  uint32_t stage = 0;
  uint64_t arena = 0;
  std::vector<Sample> samples;
};

/// The end of what a fragment's instructions touch of its lane.
uint64_t laneUse(const FragmentT &fragment) {
  uint64_t use = 0;
  auto look = [&](const std::vector<std::unique_ptr<BufferT>> &buffers) {
    for (const auto &buffer : buffers) {
      if (buffer->region != Region::lane)
        continue;
      auto bytes = static_cast<uint64_t>(dtypeSize(buffer->dtype));
      for (int64_t size : buffer->shape)
        bytes *= static_cast<uint64_t>(size);
      uint64_t offset =
          buffer->offset ? static_cast<uint64_t>(buffer->offset->base) : 0;
      use = std::max(use, offset + bytes);
    }
  };
  for (const auto &instruction : fragment.instructions) {
    look(instruction->inputs);
    look(instruction->outputs);
  }
  return use;
}

StageTimeline timelineOf(const StagePlanT &stage, const Row &row, int end) {
  StageTimeline timeline{stage.stage, stage.arena_bytes, {}};
  Levels now{};
  for (const auto &state : stage.states)
    now[seriesOf(state->role)] += state->bytes;
  auto note = [&](int time, const std::string &label) {
    timeline.samples.push_back({time, label, now});
  };
  note(0, "start");

  size_t next = 0; // run that comes next
  int clock = 0;   // end of the run before
  for (const auto &list : stage.lists) {
    if (list->name != "step")
      continue;
    for (const auto &action : list->actions) {
      bool compute = next < row.size() && action->label == row[next].label;
      // Receives and loads are posted while the run before goes on; counting
      // them from its end would hide what they hold.
      int begin = compute ? row[next].start : clock;
      int finish = compute ? begin + row[next].length() : begin;
      auto bytes = [&](const SlotBindingT &binding) {
        const SlotClassT &cls = *stage.slot_classes[binding.slot_class];
        return std::pair(seriesOf(cls.category), cls.bytes);
      };
      for (const auto &binding : action->bindings)
        if (binding->acquire) {
          auto [which, size] = bytes(*binding);
          now[which] += size;
        }
      uint64_t lane = 0;
      if (action->kind == ActionKind::run)
        lane = laneUse(*stage.fragments[action->fragment]);
      now.back() += lane;
      if (lane || !action->bindings.empty())
        note(begin, action->label);
      now.back() -= lane;
      for (const auto &binding : action->bindings)
        if (binding->release) {
          auto [which, size] = bytes(*binding);
          now[which] -= size;
        }
      if (lane || !action->bindings.empty())
        note(finish, action->label + " done");
      if (compute) {
        clock = finish;
        ++next;
      }
    }
  }
  note(end, "end");
  return timeline;
}

std::string csv(const std::vector<StageTimeline> &stages) {
  std::string text = "stage,time,action";
  for (const char *name : series)
    text += std::string(",") + name;
  text += ",total,arena\n";
  for (const StageTimeline &stage : stages)
    for (const Sample &sample : stage.samples) {
      text += std::to_string(stage.stage) + "," + std::to_string(sample.time) +
              "," + sample.label;
      for (uint64_t level : sample.levels)
        text += "," + std::to_string(level);
      text += "," + std::to_string(sample.total()) + "," +
              std::to_string(stage.arena) + "\n";
    }
  return text;
}

std::string json(const std::vector<StageTimeline> &stages) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const StageTimeline &stage : stages) {
    nlohmann::ordered_json samples = nlohmann::ordered_json::array();
    for (const Sample &sample : stage.samples) {
      nlohmann::ordered_json entry = {{"time", sample.time},
                                      {"action", sample.label}};
      for (size_t i = 0; i < series.size(); ++i)
        entry[series[i]] = sample.levels[i];
      entry["total"] = sample.total();
      samples.push_back(std::move(entry));
    }
    out.push_back({{"stage", stage.stage},
                   {"arena_bytes", stage.arena},
                   {"samples", std::move(samples)}});
  }
  return out.dump(2) + "\n";
}

std::string text(const std::vector<StageTimeline> &stages) {
  std::string out;
  for (const StageTimeline &stage : stages) {
    auto peak = std::max_element(
        stage.samples.begin(), stage.samples.end(),
        [](const Sample &a, const Sample &b) { return a.total() < b.total(); });
    out += "stage " + std::to_string(stage.stage) + ": at most " +
           humanBytes(peak->total()) + " of the arena's " +
           humanBytes(stage.arena) + " in use, at time " +
           std::to_string(peak->time) + " (" + peak->label + ")\n";
  }
  return out + "the curve: --format csv, json or svg\n";
}

std::string svg(const std::vector<StageTimeline> &stages, int end,
                const std::string &name) {
  std::vector<report::Series> names;
  for (size_t i = 0; i < series.size(); ++i)
    names.push_back({series[i], colours[i]});
  std::vector<report::MemoryCurve> curves;
  for (const StageTimeline &stage : stages) {
    report::MemoryCurve curve;
    curve.name = "stage " + std::to_string(stage.stage);
    curve.ceiling = stage.arena;
    for (const Sample &sample : stage.samples)
      curve.samples.push_back({static_cast<double>(sample.time),
                               {sample.levels.begin(), sample.levels.end()}});
    curves.push_back(std::move(curve));
  }
  return report::memoryCurves(
      curves, names, end,
      name + ": memory of a rank over one step (dashed: the arena; one unit of "
             "time is a forward, a backward takes two)");
}

} // namespace

Result<std::string> show::timeline(const LoadedPlan &plan, Format format,
                                   std::optional<unsigned> onlyStage) {
  std::vector<Row> rows;
  for (const auto &stage : plan.stages)
    rows.push_back(computeRow(*stage));
  RECKON_TRY(timetable(rows));
  int end = makespan(rows);
  std::vector<StageTimeline> stages;
  for (size_t i = 0; i < rows.size(); ++i)
    if (!onlyStage || *onlyStage == plan.stages[i]->stage)
      stages.push_back(timelineOf(*plan.stages[i], rows[i], end));
  switch (format) {
  case Format::Csv:
    return csv(stages);
  case Format::Json:
    return json(stages);
  case Format::Svg:
    return svg(stages, end, plan.manifest.name);
  case Format::Text:
  case Format::Cu:
  case Format::Perfetto:
    break;
  }
  return text(stages);
}
