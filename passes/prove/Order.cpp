//===- Order.cpp - conflicting accesses are ordered -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A vector clock for every stream says how much work of each other stream is
// known to be done when its next piece starts. Every byte remembers its last
// writer and, for each stream, its last reader since; a new access must know
// them to be done. Transitivity makes the last ones enough.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Checks.h"
#include "passes/prove/Unroll.h"

#include <algorithm>
#include <array>
#include <map>

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

namespace {

constexpr size_t kMaxStreams = 16;
using Clocks = std::array<uint32_t, kMaxStreams>;

/// Accesses to some bytes: work is numbered from 1 on its stream, 0 is none.
struct Cell {
  int64_t end = 0;
  uint32_t writer = 0;
  uint32_t writerStream = 0;
  Clocks readers{};
};

class OrderCheck {
public:
  OrderCheck(const Stage &stage, CoordFunctions &functions)
      : stage_(stage), functions_(functions), snapshots_(stage.numEvents) {
    groups_.resize(stage.plan->groups.size());
    channels_.resize(stage.plan->channels.size());
  }

  uint64_t accesses = 0, work = 0;

  Status visit(const Item &item) {
    switch (item.kind) {
    case Item::Record:
      return record(item);
    case Item::Wait: {
      const Snapshot &snapshot = snapshots_[item.event];
      for (size_t i = 0; i < kMaxStreams; ++i)
        known_[item.stream][i] =
            std::max(known_[item.stream][i], snapshot.clocks[i]);
      return Status::success();
    }
    case Item::Work:
      break;
    }
    return issue(item);
  }

private:
  struct Snapshot {
    Clocks clocks{};
    bool recorded = false;
    uint32_t stream = 0;
  };
  struct LastUse {
    uint32_t number = 0;
    uint32_t stream = 0;
  };

  Status record(const Item &item) {
    Snapshot &snapshot = snapshots_[item.event];
    // A wait only knows that the newest record or a later one happened.
    if (snapshot.recorded && snapshot.stream != item.stream)
      return refuse(describe(stage_, item.place) +
                    " records an event on stream " + stream(item.stream) +
                    " that was recorded on stream " + stream(snapshot.stream) +
                    ": a wait cannot tell the two apart");
    snapshot = {known_[item.stream], true, item.stream};
    return Status::success();
  }

  Status issue(const Item &item) {
    uint32_t number = static_cast<uint32_t>(places_[item.stream].size()) + 1;
    const ActionT &action = *stage_.list->actions[item.place.action];
    ++work;
    if (const PreparedInstruction *instruction =
            stage_.instruction(item.place.action, item.place.instruction)) {
      if (instruction->axes)
        RECKON_TRY(communicate(item, number,
                               groups_[instruction->source->group], "group"));
      for (const Operand &operand : instruction->inputs)
        RECKON_TRY(access(item, number, operand, action, false));
      for (const Operand &operand : instruction->outputs)
        RECKON_TRY(access(item, number, operand, action, true));
    } else {
      if (action.kind != ActionKind::load)
        RECKON_TRY(
            communicate(item, number, channels_[action.channel], "channel"));
      for (const Operand &operand : stage_.moved[item.place.action])
        RECKON_TRY(access(item, number, operand, action,
                          action.kind != ActionKind::send));
    }
    places_[item.stream].push_back(item);
    known_[item.stream][item.stream] = number;
    return Status::success();
  }

  /// A communicator takes its operations in the order in which the host issued
  /// them, so they may not overtake each other on the way.
  Status communicate(const Item &item, uint32_t number, LastUse &last,
                     const char *what) {
    if (last.number > known_[item.stream][last.stream])
      return refuse(describe(stage_, item.place) + " may overtake " +
                    earlier(item, last.stream, last.number) + " in the same " +
                    what + ": no stream or event orders them");
    last = {number, item.stream};
    return Status::success();
  }

  Status access(const Item &item, uint32_t number, const Operand &operand,
                const ActionT &action, bool write) {
    ++accesses;
    Range range = stage_.resolve(operand, action, functions_);
    split(range.begin);
    split(range.end);
    const Clocks &known = known_[item.stream];
    auto it = cells_.lower_bound(range.begin);
    int64_t at = range.begin;
    while (at < range.end) {
      if (it == cells_.end() || it->first > at) {
        int64_t end =
            it == cells_.end() ? range.end : std::min(range.end, it->first);
        it = cells_.emplace_hint(it, at, Cell{});
        it->second.end = end;
      }
      Cell &cell = it->second;
      if (cell.writer > known[cell.writerStream])
        return unordered(item, operand, write, cell.writerStream, cell.writer,
                         true);
      if (write) {
        for (uint32_t s = 0; s < stage_.numStreams(); ++s)
          if (cell.readers[s] > known[s] && s != item.stream)
            return unordered(item, operand, write, s, cell.readers[s], false);
      } else {
        cell.readers[item.stream] = number;
      }
      at = cell.end;
      it = write ? cells_.erase(it) : std::next(it);
    }
    if (write) {
      Cell cell;
      cell.end = range.end;
      cell.writer = number;
      cell.writerStream = item.stream;
      cells_.emplace_hint(it, range.begin, cell);
    }
    return Status::success();
  }

  /// Cuts the cell that contains `at` inside.
  void split(int64_t at) {
    auto it = cells_.lower_bound(at);
    if (it == cells_.begin())
      return;
    --it;
    if (it->first >= at || it->second.end <= at)
      return;
    Cell rest = it->second;
    it->second.end = at;
    cells_.emplace_hint(std::next(it), at, rest);
  }

  std::string stream(uint32_t number) const {
    return stage_.plan->streams[number]->name;
  }

  std::string earlier(const Item &now, uint32_t stream, uint32_t number) const {
    const Item &item = places_[stream][number - 1];
    return describe(stage_, item.place) +
           (item.step < now.step ? " of the step before" : "");
  }

  std::string name(const Operand &operand, const ActionT &action) const {
    switch (operand.region) {
    case Region::state:
      return "state " + stage_.plan->states[operand.index]->name;
    case Region::lane:
      return "lane " + stage_.plan->lanes[operand.index]->name;
    case Region::slot:
      break;
    }
    const SlotBindingT &binding = *action.bindings[operand.index];
    return "slot " + std::to_string(binding.index) + " of class " +
           stage_.plan->slot_classes[binding.slot_class]->name;
  }

  Error unordered(const Item &item, const Operand &operand, bool write,
                  uint32_t other, uint32_t number, bool otherWrites) const {
    const ActionT &action = *stage_.list->actions[item.place.action];
    return refuse(describe(stage_, item.place) +
                  (write ? " writes" : " reads") + " bytes of " +
                  name(operand, action) + " on stream " + stream(item.stream) +
                  " and is not ordered behind " + earlier(item, other, number) +
                  ", which " + (otherWrites ? "writes" : "reads") +
                  " them on stream " + stream(other));
  }

  const Stage &stage_;
  CoordFunctions &functions_;
  std::vector<Snapshot> snapshots_;
  std::array<Clocks, kMaxStreams> known_{};
  std::array<std::vector<Item>, kMaxStreams> places_;
  std::vector<LastUse> groups_, channels_;
  std::map<int64_t, Cell> cells_;
};

} // namespace

Status prove::checkOrder(Program &program, std::string &detail) {
  uint64_t accesses = 0, work = 0;
  for (const Stage &stage : program.stages) {
    if (stage.numStreams() > kMaxStreams)
      return refuse("stage " + std::to_string(stage.number()) + " has " +
                    std::to_string(stage.numStreams()) +
                    " streams, more than the proofs know");
    OrderCheck check(stage, program.functions);
    // The second and third step see what the one before left behind.
    RECKON_TRY(
        unroll(stage, 3, [&](const Item &item) { return check.visit(item); }));
    accesses += check.accesses;
    work += check.work;
  }
  detail = std::to_string(accesses) + " accesses of " + std::to_string(work) +
           " operations in 3 steps";
  return Status::success();
}
