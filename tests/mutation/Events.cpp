//===- Events.cpp - the events of a plan, one by one ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/mutation/Events.h"

#include <algorithm>
#include <map>

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
