//===- Hazards.cpp - what work touches, and what must be ordered ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Hazards.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace reckon::planir;

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

bool reckon::planir::conflict(const Work &a, const Work &b) {
  if (a.isRun && b.isRun)
    return true;
  for (const Access &x : a.accesses)
    for (const Access &y : b.accesses)
      if ((x.write || y.write) && x.place.overlaps(y.place))
        return true;
  return false;
}

std::vector<Work> reckon::planir::fragmentWork(FragmentOp fragment) {
  ArrayRef<int64_t> degrees = fragment->getParentOfType<ProgramOp>().getMesh();
  std::vector<Work> list;
  for (auto op : fragment.getBody()->getOps<InstructionOpInterface>()) {
    Work work{op, op.getStreamAttr().getAttr(), {}, false};
    for (Value buffer : op.getIns())
      work.accesses.push_back({placeOf(buffer, degrees), false});
    for (Value buffer : op.getOuts())
      work.accesses.push_back({placeOf(buffer, degrees), true});
    list.push_back(std::move(work));
  }
  return list;
}

/// Names of the formal slots that a fragment only reads.
static llvm::StringMap<bool> readOnlySlots(FragmentOp fragment) {
  llvm::StringMap<bool> readOnly;
  auto note = [&](Value buffer, bool write) {
    if (auto ref = buffer.getDefiningOp<SlotRefOp>()) {
      auto [it, fresh] = readOnly.try_emplace(ref.getSlot(), true);
      it->second &= !write;
    }
  };
  for (auto op : fragment.getBody()->getOps<InstructionOpInterface>()) {
    for (Value buffer : op.getIns())
      note(buffer, false);
    for (Value buffer : op.getOuts())
      note(buffer, true);
  }
  return readOnly;
}

std::vector<Work> reckon::planir::listWork(ActionsOp list) {
  auto program = list->getParentOfType<ProgramOp>();
  llvm::StringMap<llvm::StringMap<bool>> fragments;
  llvm::StringMap<FragmentOp> byName;
  for (auto fragment : program.getBody()->getOps<FragmentOp>()) {
    fragments[fragment.getSymName()] = readOnlySlots(fragment);
    byName[fragment.getSymName()] = fragment;
  }
  std::vector<Work> result;
  for (auto action : list.getBody()->getOps<ActionOpInterface>()) {
    Work work{action, action.getStreamAttr().getAttr(), {}, false};
    auto run = dyn_cast<RunOp>(action.getOperation());
    work.isRun = run != nullptr;
    for (auto [number, binding] :
         llvm::enumerate(action.getBindings().getAsRange<BindingAttr>())) {
      bool write = !isa<SendOp>(action.getOperation());
      if (run) {
        FragmentOp fragment = byName.lookup(run.getFragment());
        StringRef formal =
            cast<StringAttr>(fragment.getSlotNames()[number]).getValue();
        // A slot that no instruction names counts as written.
        write = !fragments[run.getFragment()].lookup(formal);
      }
      Place place{Place::Kind::Slot,
                  binding.getSlotClass().getAttr(),
                  Value(),
                  ExprAttr(),
                  binding.getIndex(),
                  binding.getIndex() + 1};
      work.accesses.push_back({place, write});
    }
    result.push_back(std::move(work));
  }
  return result;
}

//===----------------------------------------------------------------------===//
// EventGraph
//===----------------------------------------------------------------------===//

/// Whether work `from` is done before work `to` starts even without the wait
/// between the two: a walk backwards from `to` over stream order and the other
/// waits, never behind `from`.
bool EventGraph::implied(unsigned from, unsigned to) const {
  unsigned size = streams.size();
  // Positions count steps: `to` is in step 1.
  unsigned start = size + to;
  unsigned goal = from < to ? size + from : from;
  SmallVector<bool> seen(start - goal + 1, false);
  SmallVector<unsigned> stack;
  auto visit = [&](unsigned position) {
    if (position < goal || seen[position - goal])
      return;
    seen[position - goal] = true;
    stack.push_back(position);
  };
  auto expand = [&](unsigned position) {
    unsigned node = position % size;
    for (unsigned source : waits[node]) {
      if (position == start && source == from)
        continue;
      unsigned step = position / size;
      if (source < node)
        visit(step * size + source);
      else if (step > 0)
        visit((step - 1) * size + source);
    }
    for (unsigned earlier = position; earlier > goal;) {
      --earlier;
      if (!repeats && earlier < size)
        break;
      if (streams[earlier % size] == streams[node]) {
        visit(earlier);
        break;
      }
    }
  };
  expand(start);
  while (!stack.empty()) {
    unsigned position = stack.pop_back_val();
    if (streams[position % size] == streams[from])
      return true; // at or behind `from` on its own stream
    expand(position);
  }
  return false;
}

unsigned EventGraph::reduce() {
  unsigned dropped = 0;
  for (unsigned node = 0; node < waits.size(); ++node)
    for (unsigned source : std::vector<unsigned>(waits[node]))
      if (implied(source, node)) {
        std::erase(waits[node], source);
        ++dropped;
      }
  return dropped;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

EventGraph reckon::planir::readEvents(FragmentOp fragment) {
  EventGraph graph;
  StringAttr home = fragment.getHomeAttr().getAttr();
  graph.streams.push_back(home);
  llvm::DenseMap<StringAttr, unsigned> latest{{home, 0}};
  llvm::DenseMap<int64_t, unsigned> recorded;
  llvm::DenseMap<StringAttr, std::vector<unsigned>> pending;
  auto append = [&](StringAttr stream) {
    graph.waits.resize(graph.streams.size());
    latest[stream] = graph.streams.size();
    graph.streams.push_back(stream);
    graph.waits.push_back(std::move(pending[stream]));
    pending[stream].clear();
  };
  for (Operation &op : *fragment.getBody()) {
    if (auto record = dyn_cast<RecordOp>(op)) {
      StringAttr stream = record.getStreamAttr().getAttr();
      auto it = latest.find(stream);
      if (it != latest.end())
        recorded[record.getEvent()] = it->second;
      graph.exact &= it != latest.end() && pending[stream].empty();
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      auto it = recorded.find(wait.getEvent());
      if (it != recorded.end())
        pending[wait.getStreamAttr().getAttr()].push_back(it->second);
    } else if (auto work = dyn_cast<InstructionOpInterface>(op)) {
      append(work.getStreamAttr().getAttr());
    }
  }
  append(home);
  return graph;
}

void reckon::planir::writeEvents(FragmentOp fragment, const EventGraph &graph) {
  Block *block = fragment.getBody();
  for (Operation &op : llvm::make_early_inc_range(*block))
    if (isa<RecordOp, WaitOp>(op))
      op.erase();
  SmallVector<Operation *> ops{nullptr};
  for (auto op : block->getOps<InstructionOpInterface>())
    ops.push_back(op);
  ops.push_back(nullptr);

  // Number events by the place of their record.
  SmallVector<int64_t> eventOf(graph.streams.size(), -1);
  for (const auto &sources : graph.waits)
    for (unsigned source : sources)
      eventOf[source] = 0;
  int64_t events = 0;
  OpBuilder builder(fragment.getContext());
  auto stream = [](StringAttr name) { return FlatSymbolRefAttr::get(name); };
  for (auto [node, event] : llvm::enumerate(eventOf)) {
    if (event < 0)
      continue;
    event = events++;
    if (node == 0)
      builder.setInsertionPointToStart(block);
    else
      builder.setInsertionPointAfter(ops[node]);
    RecordOp::create(
        builder, ops[node] ? ops[node]->getLoc() : fragment.getLoc(),
        builder.getI64IntegerAttr(event), stream(graph.streams[node]));
  }
  for (auto [node, sources] : llvm::enumerate(graph.waits)) {
    if (ops[node])
      builder.setInsertionPoint(ops[node]);
    else
      builder.setInsertionPointToEnd(block);
    for (unsigned source : sources)
      WaitOp::create(builder,
                     ops[node] ? ops[node]->getLoc() : fragment.getLoc(),
                     builder.getI64IntegerAttr(eventOf[source]),
                     stream(graph.streams[node]));
  }
  fragment.setEvents(events);
}

//===----------------------------------------------------------------------===//
// Action lists
//===----------------------------------------------------------------------===//

EventGraph reckon::planir::readEvents(ActionsOp list) {
  EventGraph graph;
  graph.repeats = true;
  llvm::DenseMap<int64_t, unsigned> recorded;
  for (auto [node, action] :
       llvm::enumerate(list.getBody()->getOps<ActionOpInterface>()))
    for (int64_t event : action.getRecords())
      recorded[event] = node;
  for (auto action : list.getBody()->getOps<ActionOpInterface>()) {
    graph.streams.push_back(action.getStreamAttr().getAttr());
    auto &sources = graph.waits.emplace_back();
    for (int64_t event : action.getWaits())
      sources.push_back(recorded.lookup(event));
  }
  return graph;
}

void reckon::planir::writeEvents(ActionsOp list, const EventGraph &graph) {
  SmallVector<int64_t> eventOf(graph.streams.size(), -1);
  for (const auto &sources : graph.waits)
    for (unsigned source : sources)
      eventOf[source] = 0;
  int64_t events = 0;
  for (int64_t &event : eventOf)
    if (event == 0)
      event = events++;
  for (auto [node, action] :
       llvm::enumerate(list.getBody()->getOps<ActionOpInterface>())) {
    SmallVector<int64_t> waits;
    for (unsigned source : graph.waits[node])
      waits.push_back(eventOf[source]);
    llvm::sort(waits);
    action.setWaits(waits);
    action.setRecords(eventOf[node] >= 0 ? ArrayRef(eventOf[node])
                                         : ArrayRef<int64_t>());
  }
  list.setEvents(events);
}
