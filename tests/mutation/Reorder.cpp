//===- Reorder.cpp - orders of messages that need buffered sends ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tests/mutation/Reorder.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace reckon;
using namespace reckon::mutation;
using namespace reckon::plan;

const char *mutation::orderName(Order order) {
  return order == Order::OneStream ? "one-stream" : "two-streams";
}

namespace {

using Actions = std::vector<std::unique_ptr<ActionT>>;

ActionListT &stepOf(const StagePlanT &stage) {
  for (const auto &list : stage.lists)
    if (list->name == "step")
      return *list;
  return *stage.lists[0];
}

bool isMessage(const ActionT &action) {
  return action.kind == ActionKind::send || action.kind == ActionKind::recv;
}

bool waitsFor(const ActionT &action, const std::vector<uint32_t> &events) {
  return std::any_of(
      action.waits.begin(), action.waits.end(), [&](uint32_t event) {
        return std::find(events.begin(), events.end(), event) != events.end();
      });
}

/// Moves every receive down to the first action that waits for it.
void receiveLate(Actions &actions) {
  for (size_t i = actions.size(); i-- > 0;) {
    if (actions[i]->kind != ActionKind::recv)
      continue;
    size_t consumer = i + 1;
    while (consumer < actions.size() &&
           !waitsFor(*actions[consumer], actions[i]->records))
      ++consumer;
    auto at = actions.begin() + static_cast<ptrdiff_t>(i);
    std::rotate(at, at + 1, actions.begin() + static_cast<ptrdiff_t>(consumer));
  }
}

using Slot = std::pair<uint32_t, uint32_t>; // class, index

/// The slots of one class while a list is walked.
struct Class {
  bool received = false; ///< receives acquire them
  std::vector<bool> taken;
  std::vector<const ActionT *> released; ///< by whom last
};

/// Gives what receives acquire the lowest slot that is free, and their classes
/// as many slots as are in flight.
std::vector<Class> assignSlots(StagePlanT &stage) {
  std::vector<Class> classes(stage.slot_classes.size());
  for (const auto &action : stepOf(stage).actions)
    for (const auto &binding : action->bindings)
      classes[binding->slot_class].received |= action->kind == ActionKind::recv;
  std::map<Slot, uint32_t> held; // old to new
  for (const auto &action : stepOf(stage).actions) {
    std::vector<Slot> free;
    for (const auto &binding : action->bindings) {
      Class &own = classes[binding->slot_class];
      if (!own.received)
        continue;
      Slot old(binding->slot_class, binding->index);
      if (binding->acquire) {
        auto at = std::find(own.taken.begin(), own.taken.end(), false);
        held[old] = static_cast<uint32_t>(at - own.taken.begin());
        own.taken.resize(std::max(own.taken.size(), size_t{held[old]} + 1));
        own.taken[held[old]] = true;
      }
      binding->index = held[old];
      if (binding->release)
        free.emplace_back(binding->slot_class, binding->index);
    }
    for (auto [slotClass, index] : free) {
      Class &own = classes[slotClass];
      own.taken[index] = false;
      own.released.resize(own.taken.size());
      own.released[index] = action.get();
    }
  }
  for (size_t i = 0; i < classes.size(); ++i)
    if (classes[i].received)
      stage.slot_classes[i]->count =
          static_cast<uint32_t>(classes[i].taken.size());
  return classes;
}

/// A receive waits for who released its slot: in the list, or at the end of the
/// step before.
void orderReceives(StagePlanT &stage, std::vector<Class> classes) {
  for (const auto &action : stepOf(stage).actions) {
    bool receives = action->kind == ActionKind::recv;
    if (receives)
      action->waits.clear();
    for (const auto &binding : action->bindings) {
      Class &own = classes[binding->slot_class];
      if (!own.received)
        continue;
      if (receives)
        action->waits.push_back(own.released[binding->index]->records[0]);
      if (binding->release)
        own.released[binding->index] = action.get();
    }
  }
}

// --- Playing ----------------------------------------------------------------

/// An action, or one of its waits and records, on a stream.
struct Entry {
  enum Kind { Wait, Record, Work } kind = Work;
  const ActionT *action = nullptr;
  uint32_t event = 0;
  uint32_t ticket = 0; ///< records of the event until then
};

struct Player {
  const StagePlanT *plan = nullptr;
  std::vector<std::vector<Entry>> streams;
  std::vector<size_t> heads;
  std::vector<uint32_t> recorded; ///< by event
};

Player playerOf(const StagePlanT &stage) {
  Player player;
  player.plan = &stage;
  player.streams.resize(stage.streams.size());
  player.heads.resize(stage.streams.size());
  const ActionListT &list = stepOf(stage);
  std::vector<uint32_t> issued(list.events);
  player.recorded.resize(list.events);
  for (const auto &action : list.actions) {
    auto &stream = player.streams[action->stream];
    for (uint32_t event : action->waits)
      stream.push_back({Entry::Wait, action.get(), event, issued[event]});
    stream.push_back({Entry::Work, action.get(), 0, 0});
    for (uint32_t event : action->records)
      stream.push_back({Entry::Record, action.get(), event, ++issued[event]});
  }
  return player;
}

/// What a channel's two ends have done.
struct Meeting {
  uint32_t sent = 0;
  /// The stage's stream whose head waits at this channel.
  std::optional<std::pair<Player *, size_t>> sender, receiver;
};

} // namespace

void mutation::reorder(Stages &stages, Order order) {
  for (const auto &stage : stages) {
    Actions &actions = stepOf(*stage).actions;
    std::optional<uint32_t> sends, receives;
    for (const auto &action : actions) {
      if (!isMessage(*action))
        continue;
      bool first =
          order == Order::OneStream || action->kind == ActionKind::send;
      std::optional<uint32_t> &shared = first ? sends : receives;
      shared = action->stream = shared.value_or(action->stream);
    }
    receiveLate(actions);
    orderReceives(*stage, assignSlots(*stage));
  }
}

Progress mutation::play(const Stages &stages, bool bufferedSends) {
  Progress progress;
  std::vector<Player> players;
  for (const auto &stage : stages) {
    players.push_back(playerOf(*stage));
    progress.actions += stepOf(*stage).actions.size();
  }
  std::map<uint32_t, Meeting> meetings;
  auto end = [&](Player &player, size_t stream) {
    ++player.heads[stream];
    ++progress.ended;
  };
  // Whether the head of a stream ends; a rendezvous ends both of its heads.
  auto step = [&](Player &player, size_t stream) {
    const Entry &entry = player.streams[stream][player.heads[stream]];
    uint32_t *recorded =
        entry.kind == Entry::Work ? nullptr : &player.recorded[entry.event];
    if (entry.kind == Entry::Wait && *recorded < entry.ticket)
      return false;
    if (entry.kind == Entry::Record)
      *recorded = std::max(*recorded, entry.ticket);
    if (recorded) {
      ++player.heads[stream];
      return true;
    }
    if (!isMessage(*entry.action)) {
      end(player, stream);
      return true;
    }
    Meeting &meeting =
        meetings[player.plan->channels[entry.action->channel]->id];
    bool sends = entry.action->kind == ActionKind::send;
    if (bufferedSends) {
      if (!sends && meeting.sent == 0)
        return false;
      meeting.sent += sends ? 1 : -1;
      end(player, stream);
      return true;
    }
    (sends ? meeting.sender : meeting.receiver) = {&player, stream};
    if (!meeting.sender || !meeting.receiver)
      return false;
    end(*meeting.sender->first, meeting.sender->second);
    end(*meeting.receiver->first, meeting.receiver->second);
    meeting = {};
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (Player &player : players)
      for (size_t stream = 0; stream < player.streams.size(); ++stream)
        while (player.heads[stream] < player.streams[stream].size() &&
               step(player, stream))
          moved = true;
  }
  for (const Player &player : players)
    for (size_t stream = 0; stream < player.streams.size(); ++stream)
      if (player.heads[stream] < player.streams[stream].size())
        progress.blocked.push_back(
            player.streams[stream][player.heads[stream]].action->label);
  return progress;
}
