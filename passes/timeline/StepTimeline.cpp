//===- StepTimeline.cpp - when every action of a step runs ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/timeline/StepTimeline.h"

#include "passes/timeline/Replay.h"

#include <algorithm>
#include <map>

using namespace reckon;
using namespace reckon::plan;
using namespace reckon::timeline;

namespace {

enum class Part { Unpredicted, Forward, Backward, Message, Update };

/// Labels are `begin`, `update`, and stage, pass, micro-batch: `2F0`.
Part partOf(const ActionT &action) {
  switch (action.kind) {
  case ActionKind::send:
  case ActionKind::recv:
    return Part::Message;
  case ActionKind::load:
    return Part::Unpredicted;
  case ActionKind::run:
    break;
  }
  if (action.label == "update")
    return Part::Update;
  size_t pass = action.label.find_first_not_of("0123456789");
  if (pass == std::string::npos || pass == 0)
    return Part::Unpredicted;
  return action.label[pass] == 'F'   ? Part::Forward
         : action.label[pass] == 'B' ? Part::Backward
                                     : Part::Unpredicted;
}

/// The update of one stage: its fragment, priced, and when it may begin.
struct Update {
  const StagePlanT *plan = nullptr;
  const FragmentT *fragment = nullptr;
  std::vector<double> seconds;
  std::vector<size_t> meetings;
  std::vector<std::string> names; ///< of the meetings, equal on all stages
  double start = 0;
};

/// The updates of all stages, which meet in collectives.
class Updates {
public:
  void add(const StagePlanT &plan, const FragmentT &fragment,
           const InstructionTime &time, double start) {
    Update update{&plan,
                  &fragment,
                  instructionSeconds(time, plan, fragment),
                  meetings(plan, fragment),
                  {},
                  start};
    std::map<std::string, int> seen;
    for (size_t i : update.meetings) {
      const std::string &group =
          plan.groups[fragment.instructions[i]->group]->name;
      update.names.push_back(group + "#" + std::to_string(seen[group]++));
    }
    updates_.push_back(std::move(update));
  }

  /// All stages' times; each meeting begins when the last stage has come.
  std::vector<FragmentTimes> times(double scale) const {
    std::map<std::string, double> met;
    while (true) {
      std::vector<FragmentTimes> all;
      std::map<std::string, double> next = met;
      for (const Update &update : updates_) {
        std::vector<double> notBefore;
        for (const std::string &name : update.names)
          notBefore.push_back(met.count(name) ? met.at(name) : 0);
        all.push_back(fragmentTimes(*update.fragment, update.seconds,
                                    update.start, scale, update.meetings,
                                    notBefore));
        for (size_t i = 0; i < update.names.size(); ++i) {
          double &latest = next[update.names[i]];
          latest = std::max(latest,
                            all.back().instructions[update.meetings[i]].start);
        }
      }
      if (next == met)
        return all;
      met = std::move(next);
    }
  }

  double end(double scale) const {
    double end = 0;
    for (const FragmentTimes &times : times(scale))
      end = std::max(end, times.end);
    return end;
  }

  /// The scale with which the last stage ends at `end`, found by halving: the
  /// end grows with the scale.
  double scaleFor(double end) const {
    double high = 1;
    for (int i = 0; this->end(high) < end; ++i, high *= 2)
      if (i == 64)
        return 1; // nothing in it takes time
    double low = 0;
    for (int i = 0; i < 64; ++i) {
      double middle = (low + high) / 2;
      (this->end(middle) < end ? low : high) = middle;
    }
    return high;
  }

private:
  std::vector<Update> updates_;
};

class Builder {
public:
  Builder(std::span<const StagePlanT *const> stages,
          const Prediction &prediction, const InstructionTime &time)
      : stages_(stages), prediction_(prediction), time_(time) {}

  Result<StepTimeline> build() {
    if (!prediction_.known())
      return makeError(ExitCode::BadSpec,
                       "expected a plan with predicted times, got a manifest "
                       "without \"prediction\"; compile the plan again");
    RECKON_CHECK(prediction_.stages.size() == stages_.size());
    Result<Replay> replayed = replay(stages_, seconds());
    if (!replayed)
      return replayed.error();
    scalePipeline(*replayed);
    for (size_t s = 0; s < stages_.size(); ++s)
      addStage(s, replayed->actions[s]);
    placeUpdates();
    for (const auto &[send, receive] : replayed->messages)
      out_.messages.push_back({send.first, position_[send.first][send.second],
                               receive.first,
                               position_[receive.first][receive.second]});
    out_.stepEnd = out_.updateEnd + prediction_.overhead;
    return std::move(out_);
  }

private:
  std::vector<std::vector<double>> seconds() const {
    std::vector<std::vector<double>> all(stages_.size());
    for (size_t s = 0; s < stages_.size(); ++s) {
      const ActionListT *list = stepList(*stages_[s]);
      if (!list)
        continue;
      for (const auto &action : list->actions) {
        Part part = partOf(*action);
        all[s].push_back(part == Part::Forward ? prediction_.stages[s].forward
                         : part == Part::Backward
                             ? prediction_.stages[s].backward
                         : part == Part::Message ? prediction_.message
                                                 : 0);
      }
    }
    return all;
  }

  void scalePipeline(Replay &replayed) {
    double end = 0;
    for (const auto &stage : replayed.actions)
      for (const Span &span : stage)
        end = std::max(end, span.end);
    out_.pipelineScale = end > 0 ? prediction_.pipeline / end : 1;
    out_.pipelineEnd = prediction_.pipeline;
    for (auto &stage : replayed.actions)
      for (Span &span : stage)
        span = {span.start * out_.pipelineScale, span.end * out_.pipelineScale};
  }

  void addStage(size_t s, const std::vector<Span> &spans) {
    StageTimes stage{stages_[s], stepList(*stages_[s]), {}, {}};
    position_.emplace_back(spans.size(), 0);
    std::map<const FragmentT *, std::vector<double>> priced;
    for (size_t i = 0; i < spans.size(); ++i) {
      const ActionT &action = *stage.list->actions[i];
      Part part = partOf(action);
      if (part == Part::Unpredicted)
        continue;
      position_[s][i] = stage.actions.size();
      ActionTimes times{i, spans[i], {}};
      if (part == Part::Forward || part == Part::Backward) {
        const FragmentT &fragment = *stages_[s]->fragments[action.fragment];
        std::vector<double> &seconds = priced[&fragment];
        if (seconds.empty())
          seconds = instructionSeconds(time_, *stages_[s], fragment);
        double alone = fragmentTimes(fragment, seconds, 0, 1).end;
        double scale = alone > 0 ? spans[i].length() / alone : 0;
        times.instructions =
            fragmentTimes(fragment, seconds, spans[i].start, scale)
                .instructions;
      }
      stage.actions.push_back(std::move(times));
    }
    stage.slots = slots(stage, spans);
    out_.stages.push_back(std::move(stage));
  }

  void placeUpdates() {
    Updates updates;
    std::vector<ActionTimes *> placed;
    for (StageTimes &stage : out_.stages)
      for (ActionTimes &times : stage.actions) {
        const ActionT &action = *stage.list->actions[times.action];
        if (partOf(action) != Part::Update)
          continue;
        updates.add(*stage.plan, *stage.plan->fragments[action.fragment], time_,
                    times.span.start);
        placed.push_back(&times);
      }
    out_.updateEnd = out_.pipelineEnd + prediction_.update;
    if (placed.empty())
      return;
    out_.updateScale = updates.scaleFor(out_.updateEnd);
    std::vector<FragmentTimes> all = updates.times(out_.updateScale);
    for (size_t i = 0; i < placed.size(); ++i) {
      placed[i]->span.end = all[i].end;
      placed[i]->instructions = std::move(all[i].instructions);
    }
  }

  /// A slot counts from the start of the action that acquires it to the end of
  /// the one that releases it. `spans`: of all actions of the list.
  static std::vector<MemorySample> slots(const StageTimes &stage,
                                         const std::vector<Span> &spans) {
    std::map<double, int64_t> changes;
    for (size_t i = 0; i < spans.size(); ++i)
      for (const auto &binding : stage.list->actions[i]->bindings) {
        auto bytes = static_cast<int64_t>(
            stage.plan->slot_classes[binding->slot_class]->bytes);
        if (binding->acquire)
          changes[spans[i].start] += bytes;
        if (binding->release)
          changes[spans[i].end] -= bytes;
      }
    std::vector<MemorySample> samples;
    int64_t now = 0;
    for (auto [time, change] : changes)
      samples.push_back({time, now += change});
    return samples;
  }

  std::span<const StagePlanT *const> stages_;
  const Prediction &prediction_;
  const InstructionTime &time_;
  StepTimeline out_;
  /// Of an action in StageTimes::actions.
  std::vector<std::vector<size_t>> position_;
};

} // namespace

Result<StepTimeline>
timeline::stepTimeline(std::span<const StagePlanT *const> stages,
                       const Prediction &prediction,
                       const InstructionTime &time) {
  return Builder(stages, prediction, time).build();
}
