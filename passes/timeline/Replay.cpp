//===- Replay.cpp - the lists of all stages with given durations ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/timeline/Replay.h"

#include <algorithm>
#include <map>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::timeline;

const ActionListT *timeline::stepList(const StagePlanT &plan) {
  for (const auto &list : plan.lists)
    if (list->name == "step")
      return list.get();
  return nullptr;
}

namespace {

constexpr double kNotYet = -1;

class Simulation {
public:
  Simulation(std::span<const StagePlanT *const> stages,
             const std::vector<std::vector<double>> &seconds)
      : seconds_(seconds) {
    for (const StagePlanT *plan : stages)
      addStage(*plan);
    pair(stages);
  }

  Result<Replay> run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t stage = 0; stage < stages_.size(); ++stage)
        for (auto &queue : stages_[stage].queues)
          while (queue.next < queue.actions.size() &&
                 issue(stage, queue.actions[queue.next])) {
            ++queue.next;
            moved = true;
          }
    }
    for (size_t stage = 0; stage < stages_.size(); ++stage)
      for (const auto &queue : stages_[stage].queues)
        if (queue.next < queue.actions.size())
          return makeError(
              ExitCode::Corrupt,
              "expected action lists that end, got lists that wait for each "
              "other: stage " +
                  std::to_string(stage) + " never comes past " +
                  stages_[stage]
                      .list->actions[queue.actions[queue.next]]
                      ->label +
                  "; compile the plan again");
    Replay result;
    for (Stage &stage : stages_)
      result.actions.push_back(std::move(stage.spans));
    result.messages = std::move(messages_);
    return result;
  }

private:
  struct Queue {
    std::vector<size_t> actions; ///< of one stream, in issue order
    size_t next = 0;
  };
  struct Stage {
    const ActionListT *list = nullptr;
    std::vector<Queue> queues;
    std::vector<std::vector<size_t>> after; ///< actions that must have ended
    std::vector<Span> spans;                ///< start kNotYet: not run yet
    std::vector<ActionAt> partner;          ///< of sends and receives
  };

  void addStage(const StagePlanT &plan) {
    Stage stage;
    stage.list = stepList(plan);
    size_t count = stage.list ? stage.list->actions.size() : 0;
    stage.queues.resize(plan.streams.size());
    stage.after.resize(count);
    stage.spans.assign(count, {kNotYet, kNotYet});
    stage.partner.resize(count);
    std::map<uint32_t, size_t> recorded;
    for (size_t i = 0; i < count; ++i) {
      const ActionT &action = *stage.list->actions[i];
      std::vector<size_t> &queue = stage.queues[action.stream].actions;
      if (!queue.empty())
        stage.after[i].push_back(queue.back());
      queue.push_back(i);
      for (uint32_t event : action.waits)
        if (auto it = recorded.find(event); it != recorded.end())
          stage.after[i].push_back(it->second);
      for (uint32_t event : action.records)
        recorded[event] = i;
    }
    stages_.push_back(std::move(stage));
  }

  /// The n-th send of a channel goes to its n-th receive.
  void pair(std::span<const StagePlanT *const> stages) {
    std::map<uint32_t, std::vector<ActionAt>> sends, receives;
    for (size_t s = 0; s < stages_.size(); ++s)
      for (size_t i = 0; i < stages_[s].spans.size(); ++i) {
        const ActionT &action = *stages_[s].list->actions[i];
        bool sending = action.kind == ActionKind::send;
        if (sending || action.kind == ActionKind::recv)
          (sending ? sends : receives)[stages[s]->channels[action.channel]->id]
              .push_back({s, i});
      }
    for (const auto &[id, list] : sends) {
      const std::vector<ActionAt> &ends = receives[id];
      for (size_t i = 0; i < std::min(list.size(), ends.size()); ++i) {
        stages_[list[i].first].partner[list[i].second] = ends[i];
        stages_[ends[i].first].partner[ends[i].second] = list[i];
        messages_.emplace_back(list[i], ends[i]);
      }
    }
  }

  /// When the action could start by its own stage, or kNotYet.
  double ready(const Stage &stage, size_t action) const {
    double time = 0;
    for (size_t before : stage.after[action]) {
      if (stage.spans[before].start == kNotYet)
        return kNotYet;
      time = std::max(time, stage.spans[before].end);
    }
    return time;
  }

  bool issue(size_t s, size_t i) {
    Stage &stage = stages_[s];
    if (stage.spans[i].start != kNotYet)
      return true; // a message that its other end has begun
    double start = ready(stage, i);
    if (start == kNotYet)
      return false;
    ActionKind kind = stage.list->actions[i]->kind;
    if (kind != ActionKind::send && kind != ActionKind::recv) {
      stage.spans[i] = {start, start + seconds_[s][i]};
      return true;
    }
    auto [other, at] = stage.partner[i];
    if (stages_[other].partner.empty() ||
        stages_[other].partner[at] != ActionAt{s, i} ||
        stages_[other].list->actions[at]->kind == kind)
      return false; // nobody sends or receives it
    double there = ready(stages_[other], at);
    if (there == kNotYet)
      return false;
    start = std::max(start, there);
    bool sends = kind == ActionKind::send;
    Span span{start, start + (sends ? seconds_[s][i] : seconds_[other][at])};
    stage.spans[i] = stages_[other].spans[at] = span;
    return true;
  }

  const std::vector<std::vector<double>> &seconds_;
  std::vector<Stage> stages_;
  std::vector<std::pair<ActionAt, ActionAt>> messages_;
};

} // namespace

Result<Replay>
timeline::replay(std::span<const StagePlanT *const> stages,
                 const std::vector<std::vector<double>> &seconds) {
  return Simulation(stages, seconds).run();
}
