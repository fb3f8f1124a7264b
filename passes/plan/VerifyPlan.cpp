//===- VerifyPlan.cpp - verify-plan ---------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Hazards.h"
#include "passes/plan/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace reckon::planir {
#define GEN_PASS_DEF_VERIFYPLAN
#include "passes/plan/Passes.h.inc"
} // namespace reckon::planir

using namespace mlir;
using namespace reckon::planir;

namespace {

/// What is known to be done: per stream, how many of its pieces of work.
using Clock = llvm::MapVector<StringAttr, unsigned>;

void merge(Clock &into, const Clock &from) {
  for (const auto &[stream, count] : from) {
    unsigned &mine = into[stream];
    mine = std::max(mine, count);
  }
}

/// Replays issue order: streams run their work in order, a record remembers
/// what its stream knows, a wait adds that to its own stream.
class Replay {
public:
  void record(StringAttr stream, int64_t event) {
    Clock known = clocks[stream];
    known[stream] = issued[stream].count;
    events[event] = std::move(known);
  }

  /// A wait for an event that was never recorded passes.
  void wait(StringAttr stream, int64_t event) {
    auto it = events.find(event);
    if (it != events.end())
      merge(clocks[stream], it->second);
  }

  /// Issues work; reports each earlier one on another stream that it conflicts
  /// with and that is not known to be done.
  LogicalResult issue(const Work &work) {
    Clock &known = clocks[work.stream];
    llvm::SmallSetVector<StringAttr, 8> names;
    for (const Access &access : work.accesses)
      names.insert(access.place.name);
    if (work.isRun) // conflicts with every other run
      names.insert(StringAttr::get(work.op->getContext(), "run"));
    for (auto &[stream, list] : issued) {
      if (stream == work.stream)
        continue;
      unsigned done = known.lookup(stream);
      for (StringAttr name : names) {
        auto touching = list.byName.find(name);
        if (touching == list.byName.end())
          continue;
        for (auto [number, earlier] : llvm::reverse(touching->second)) {
          if (number < done)
            break;
          if (conflict(*earlier, work))
            return reportUnordered(work, *earlier);
        }
      }
    }
    Issued &mine = issued[work.stream];
    for (StringAttr name : names)
      mine.byName[name].emplace_back(mine.count, &work);
    ++mine.count;
    return success();
  }

  /// Whether `stream` knows all work of every stream to be done; else the one
  /// it does not.
  StringAttr unfinished(StringAttr stream) {
    for (auto &[other, list] : issued)
      if (other != stream && clocks[stream].lookup(other) < list.count)
        return other;
    return {};
  }

  /// Whether `stream` starts behind the first work of `home`.
  bool knows(StringAttr stream, StringAttr home) {
    return clocks[stream].lookup(home) > 0;
  }

private:
  static LogicalResult reportUnordered(const Work &work, const Work &earlier) {
    InFlightDiagnostic diag = work.op->emitOpError()
                              << "on stream " << work.stream
                              << " touches bytes of earlier work on stream "
                              << earlier.stream
                              << " and is not ordered behind it";
    diag.attachNote(earlier.op->getLoc()) << "that work is here";
    return failure();
  }

  /// Work of one stream: how much, and which by what it touches (a state, a
  /// slot, null for the lane).
  struct Issued {
    unsigned count = 0;
    llvm::DenseMap<StringAttr, std::vector<std::pair<unsigned, const Work *>>>
        byName;
  };
  llvm::MapVector<StringAttr, Issued> issued;
  llvm::DenseMap<StringAttr, Clock> clocks;
  llvm::DenseMap<int64_t, Clock> events;
};

LogicalResult verifyFragmentOrder(FragmentOp fragment) {
  if (!fragment.getHomeAttr())
    return fragment.emitOpError("has no home stream");
  for (Operation &op : *fragment.getBody()) {
    if (isa<TempOp>(op))
      return op.emitOpError("has no place in the arena");
    auto work = dyn_cast<InstructionOpInterface>(op);
    if (work && !work.getStreamAttr())
      return op.emitOpError("has no stream");
  }
  StringAttr home = fragment.getHomeAttr().getAttr();
  std::vector<Work> work = fragmentWork(fragment);
  Replay replay;
  // Everything that ran before the fragment, on its home stream.
  Work begin{fragment, home, {}, false};
  if (failed(replay.issue(begin)))
    return failure();
  size_t next = 0;
  for (Operation &op : *fragment.getBody()) {
    if (auto record = dyn_cast<RecordOp>(op)) {
      replay.record(record.getStreamAttr().getAttr(), record.getEvent());
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      replay.wait(wait.getStreamAttr().getAttr(), wait.getEvent());
    } else if (isa<InstructionOpInterface>(op)) {
      const Work &item = work[next++];
      if (item.stream != home && !replay.knows(item.stream, home))
        return op.emitOpError() << "starts on stream " << item.stream
                                << " before the fragment does";
      if (failed(replay.issue(item)))
        return failure();
    }
  }
  if (StringAttr stream = replay.unfinished(home))
    return fragment.emitOpError()
           << "ends before its work on stream " << stream;
  return success();
}

/// Buffers that live at the same time are apart, in program order. One
/// reference is one buffer, whatever values it holds in turn.
LogicalResult verifyApart(FragmentOp fragment, ArrayRef<int64_t> degrees) {
  struct Life {
    Place place;
    unsigned first, last;
  };
  llvm::MapVector<Value, Life> lives;
  unsigned position = 0;
  for (auto op : fragment.getBody()->getOps<InstructionOpInterface>()) {
    for (Value buffer : op->getOperands())
      if (isa_and_nonnull<LaneRefOp, SlotRefOp>(buffer.getDefiningOp())) {
        auto [it, fresh] = lives.insert(
            {buffer, {placeOf(buffer, degrees), position, position}});
        it->second.last = position;
      }
    ++position;
  }
  SmallVector<std::pair<Value, Life>> list = lives.takeVector();
  // By first byte: only neighbours up to the end of a buffer can meet it.
  llvm::stable_sort(list, [](const auto &a, const auto &b) {
    return a.second.place.begin < b.second.place.begin;
  });
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = i + 1; j < list.size() && list[j].second.place.begin <
                                                  list[i].second.place.end;
         ++j) {
      const Life &a = list[i].second, &b = list[j].second;
      if (!a.place.overlaps(b.place))
        continue;
      // What lies in a slot lives beyond the fragment.
      bool together = a.place.kind == Place::Kind::Slot ||
                      (a.first <= b.last && b.first <= a.last);
      if (together) {
        InFlightDiagnostic diag =
            list[j].first.getDefiningOp()->emitOpError()
            << "starts at byte " << b.place.begin
            << ", inside another buffer that lives at the same time";
        diag.attachNote(list[i].first.getLoc())
            << "which ends at byte " << a.place.end;
        return failure();
      }
    }
  return success();
}

LogicalResult verifyListOrder(ActionsOp list) {
  for (auto action : list.getBody()->getOps<ActionOpInterface>())
    if (!action.getStreamAttr())
      return action.emitOpError("has no stream");
  std::vector<Work> work = listWork(list);
  Replay replay;
  // Three steps: the second and third see what the step before left behind.
  for (int step = 0; step < 3; ++step)
    for (const Work &item : work) {
      auto action = cast<ActionOpInterface>(item.op);
      for (int64_t event : action.getWaits())
        replay.wait(item.stream, event);
      if (failed(replay.issue(item)))
        return failure();
      for (int64_t event : action.getRecords())
        replay.record(item.stream, event);
    }
  return success();
}

/// A slot's content is acquired, used, and released, in turn.
LogicalResult verifySlots(ActionsOp list) {
  llvm::DenseMap<std::pair<StringAttr, int64_t>, Operation *> held;
  for (auto action : list.getBody()->getOps<ActionOpInterface>())
    for (auto binding : action.getBindings().getAsRange<BindingAttr>()) {
      std::pair<StringAttr, int64_t> slot(binding.getSlotClass().getAttr(),
                                          binding.getIndex());
      bool busy = held.contains(slot);
      if (binding.getAcquire() && busy)
        return action.emitOpError()
               << "acquires slot " << slot.second << " of "
               << binding.getSlotClass() << ", which is not released yet";
      if (!binding.getAcquire() && !busy)
        return action.emitOpError()
               << "uses slot " << slot.second << " of "
               << binding.getSlotClass() << ", which nobody has acquired";
      if (binding.getRelease())
        held.erase(slot);
      else
        held[slot] = action;
    }
  if (held.empty())
    return success();
  Operation *first = nullptr;
  for (auto &[slot, action] : held)
    if (!first || action->isBeforeInBlock(first))
      first = action;
  return first->emitOpError("holds a slot that nobody releases in this step");
}

class VerifyPlanPass
    : public reckon::planir::impl::VerifyPlanBase<VerifyPlanPass> {
  void runOnOperation() override {
    if (failed(check(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved();
  }

  LogicalResult check(ProgramOp program) {
    if (!program.getArenaBytes())
      return program.emitOpError("has no arena; run plan-allocate-buffers");
    for (Operation &op : *program.getBody()) {
      if (auto fragment = dyn_cast<FragmentOp>(op)) {
        if (failed(verifyFragmentOrder(fragment)) ||
            failed(verifyApart(fragment, program.getMesh())))
          return failure();
      } else if (auto list = dyn_cast<ActionsOp>(op)) {
        if (failed(verifyListOrder(list)) || failed(verifySlots(list)))
          return failure();
      }
    }
    return success();
  }
};

} // namespace
