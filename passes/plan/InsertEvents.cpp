//===- InsertEvents.cpp - plan-insert-events ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Hazards.h"
#include "passes/plan/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

namespace reckon::planir {
#define GEN_PASS_DEF_INSERTEVENTS
#include "passes/plan/Passes.h.inc"
} // namespace reckon::planir

using namespace mlir;
using namespace reckon::planir;

namespace {

using WorkByStream = llvm::MapVector<StringAttr, SmallVector<unsigned>>;

/// Waits inside a fragment; nodes as readEvents numbers them.
EventGraph fragmentGraph(FragmentOp fragment) {
  std::vector<Work> work = fragmentWork(fragment);
  StringAttr home = fragment.getHomeAttr().getAttr();
  EventGraph graph;
  unsigned end = work.size() + 1;
  graph.waits.resize(end + 1);
  graph.streams.push_back(home);
  WorkByStream done;
  for (auto [number, later] : llvm::enumerate(work)) {
    auto &waits = graph.waits[number + 1];
    graph.streams.push_back(later.stream);
    if (later.stream != home && !done.contains(later.stream))
      waits.push_back(0);
    // The last conflicting instruction of another stream stands for all
    // earlier ones of that stream.
    for (auto &[stream, earlier] : done) {
      if (stream == later.stream)
        continue;
      for (unsigned candidate : llvm::reverse(earlier))
        if (conflict(work[candidate], later)) {
          waits.push_back(candidate + 1);
          break;
        }
    }
    done[later.stream].push_back(number);
  }
  graph.streams.push_back(home);
  for (auto &[stream, earlier] : done)
    if (stream != home)
      graph.waits[end].push_back(earlier.back() + 1);
  return graph;
}

/// Waits between actions, within a step and from the step before.
EventGraph listGraph(ActionsOp list) {
  std::vector<Work> work = listWork(list);
  EventGraph graph;
  graph.repeats = true;
  WorkByStream streams;
  // Which slot classes a stream ever touches: most pairs of streams have none
  // in common and need no search.
  llvm::DenseMap<StringAttr, llvm::DenseSet<StringAttr>> classes;
  for (auto [number, item] : llvm::enumerate(work)) {
    graph.streams.push_back(item.stream);
    streams[item.stream].push_back(number);
    for (const Access &access : item.accesses)
      classes[item.stream].insert(access.place.name);
  }
  for (unsigned number = 0; number < work.size(); ++number) {
    auto &waits = graph.waits.emplace_back();
    for (auto &[stream, members] : streams) {
      bool common = work[number].isRun ||
                    llvm::any_of(work[number].accesses, [&](const Access &a) {
                      return classes[stream].contains(a.place.name);
                    });
      if (stream == work[number].stream || !common)
        continue;
      // Backwards through this step, then through the end of the previous one.
      auto split = llvm::lower_bound(members, number);
      auto hits = [&](unsigned member) {
        return conflict(work[member], work[number]);
      };
      auto before = llvm::make_range(members.begin(), split);
      auto after = llvm::make_range(split, members.end());
      auto found = llvm::find_if(llvm::reverse(before), hits);
      if (found != std::make_reverse_iterator(members.begin())) {
        waits.push_back(*found);
        continue;
      }
      auto previous = llvm::find_if(llvm::reverse(after), hits);
      if (previous != std::make_reverse_iterator(split))
        waits.push_back(*previous);
    }
  }
  return graph;
}

class InsertEventsPass
    : public reckon::planir::impl::InsertEventsBase<InsertEventsPass> {
  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody()) {
      if (auto fragment = dyn_cast<FragmentOp>(op))
        writeEvents(fragment, fragmentGraph(fragment));
      else if (auto list = dyn_cast<ActionsOp>(op))
        writeEvents(list, listGraph(list));
    }
  }
};

} // namespace
