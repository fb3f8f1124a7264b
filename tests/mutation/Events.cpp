//===- Events.cpp - the events of a plan, one by one ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/mutation/Events.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace reckon;
using namespace reckon::mutation;
using namespace reckon::plan;

namespace {

struct Ends {
  std::string record;
  std::string wait;
};

bool isEvent(const InstructionT &instruction) {
  return instruction.op == Opcode::record || instruction.op == Opcode::wait;
}

ActionListT &stepOf(StagePlanT &stage) {
  for (const auto &list : stage.lists)
    if (list->name == "step")
      return *list;
  return *stage.lists[0];
}

} // namespace

std::vector<EventPlace> mutation::eventsOf(const Stages &stages) {
  std::vector<EventPlace> places;
  for (size_t s = 0; s < stages.size(); ++s) {
    StagePlanT &stage = *stages[s];
    std::string where = "stage " + std::to_string(s) + " ";
    auto add = [&](int fragment, const std::string &name,
                   const std::map<uint32_t, Ends> &events) {
      for (const auto &[event, ends] : events)
        if (!ends.record.empty() && !ends.wait.empty())
          places.push_back(
              {s, fragment, event,
               where + name + ": " + ends.record + " -> " + ends.wait});
    };
    std::map<uint32_t, Ends> ofList;
    for (const auto &action : stepOf(stage).actions) {
      for (uint32_t event : action->records)
        ofList[event].record = action->label;
      for (uint32_t event : action->waits)
        ofList[event].wait = action->label;
    }
    add(-1, "step", ofList);
    for (size_t f = 0; f < stage.fragments.size(); ++f) {
      const FragmentT &fragment = *stage.fragments[f];
      std::map<uint32_t, Ends> events;
      for (size_t i = 0; i < fragment.instructions.size(); ++i) {
        const InstructionT &it = *fragment.instructions[i];
        if (it.op == Opcode::record)
          events[it.event].record = "#" + std::to_string(i);
        if (it.op == Opcode::wait)
          events[it.event].wait = "#" + std::to_string(i);
      }
      add(static_cast<int>(f), fragment.name, events);
    }
  }
  return places;
}

namespace {

/// What happens before what in one step of all stages: an action has a start
/// and an end, numbered 2 i and 2 i + 1.
class StepOrder {
public:
  StepOrder(const Stages &stages, const EventPlace &without) {
    std::vector<size_t> first;
    for (const auto &stage : stages) {
      first.push_back(after_.size() / 2);
      after_.resize(after_.size() + 2 * stepOf(*stage).actions.size());
    }
    // The k-th sends and receives of each channel.
    std::map<uint32_t, std::vector<size_t>> sends, receives;
    for (size_t s = 0; s < stages.size(); ++s) {
      std::map<uint32_t, size_t> last;
      std::map<uint32_t, size_t> recorded;
      const auto &actions = stepOf(*stages[s]).actions;
      for (size_t i = 0; i < actions.size(); ++i) {
        size_t at = first[s] + i;
        edge(2 * at, 2 * at + 1);
        if (auto before = last.find(actions[i]->stream); before != last.end())
          edge(2 * before->second + 1, 2 * at);
        last[actions[i]->stream] = at;
        auto other = [&](uint32_t event) {
          return s != without.stage || event != without.event;
        };
        for (uint32_t event : actions[i]->waits)
          if (recorded.count(event) && other(event))
            edge(2 * recorded[event] + 1, 2 * at);
        for (uint32_t event : actions[i]->records)
          recorded[event] = at;
        if (actions[i]->kind == ActionKind::send)
          sends[stages[s]->channels[actions[i]->channel]->id].push_back(at);
        if (actions[i]->kind == ActionKind::recv)
          receives[stages[s]->channels[actions[i]->channel]->id].push_back(at);
      }
    }
    for (const auto &[channel, from] : sends) {
      const std::vector<size_t> &to = receives[channel];
      for (size_t k = 0; k < std::min(from.size(), to.size()); ++k) {
        edge(2 * from[k], 2 * to[k] + 1);
        edge(2 * to[k], 2 * from[k] + 1);
      }
    }
    first_ = first;
  }

  /// Whether the end of one action is before the start of another of a stage.
  bool before(size_t stage, size_t from, size_t to) const {
    std::vector<bool> seen(after_.size(), false);
    std::vector<size_t> stack{2 * (first_[stage] + from) + 1};
    while (!stack.empty()) {
      size_t at = stack.back();
      stack.pop_back();
      if (at == 2 * (first_[stage] + to))
        return true;
      if (seen[at])
        continue;
      seen[at] = true;
      stack.insert(stack.end(), after_[at].begin(), after_[at].end());
    }
    return false;
  }

private:
  void edge(size_t from, size_t to) { after_[from].push_back(to); }

  std::vector<std::vector<size_t>> after_;
  std::vector<size_t> first_;
};

} // namespace

bool mutation::impliedElsewhere(const Stages &stages, const EventPlace &place) {
  if (place.fragment >= 0)
    return false;
  StepOrder order(stages, place);
  const auto &actions = stepOf(*stages[place.stage]).actions;
  auto has = [&](const std::vector<uint32_t> &events) {
    return std::find(events.begin(), events.end(), place.event) != events.end();
  };
  std::optional<size_t> recorded;
  for (size_t i = 0; i < actions.size(); ++i) {
    // A wait before the record is for the step before.
    if (has(actions[i]->waits) && recorded &&
        !order.before(place.stage, *recorded, i))
      return false;
    if (has(actions[i]->records))
      recorded = i;
  }
  return true;
}

void mutation::removeEvent(Stages &stages, const EventPlace &place) {
  StagePlanT &stage = *stages[place.stage];
  if (place.fragment < 0) {
    for (const auto &action : stepOf(stage).actions) {
      std::erase(action->records, place.event);
      std::erase(action->waits, place.event);
    }
    return;
  }
  auto &instructions =
      stage.fragments[static_cast<size_t>(place.fragment)]->instructions;
  std::erase_if(instructions, [&](const auto &it) {
    return isEvent(*it) && it->event == place.event;
  });
}
