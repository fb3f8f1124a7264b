//===- Hazards.h - what work touches, and what must be ordered ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_HAZARDS_H
#define RECKON_PASSES_PLAN_HAZARDS_H

#include "dialect/Plan/Plan.h"

#include <vector>

namespace reckon::planir {

/// Bytes that a piece of work reads or writes.
struct Access {
  Place place;
  bool write;
};

/// An instruction of a fragment or an action of a list.
struct Work {
  mlir::Operation *op;
  mlir::StringAttr stream;
  std::vector<Access> accesses;
  /// Runs of fragments share states and lanes: two of them always conflict.
  bool isRun = false;
};

/// Whether two pieces of work may not overlap in time: one of them writes bytes
/// that the other touches.
bool conflict(const Work &a, const Work &b);

/// The instructions of a fragment in issue order. All have streams.
std::vector<Work> fragmentWork(FragmentOp fragment);

/// The actions of a list in issue order; a slot counts as one place. Which
/// slots a fragment writes is read off its instructions.
std::vector<Work> listWork(ActionsOp list);

/// Waits between pieces of work, as edges: `waits[j]` has the numbers of the
/// work that j's stream waits for before j. In a list that repeats, an i >= j
/// is that of the previous step.
struct EventGraph {
  llvm::SmallVector<mlir::StringAttr> streams; ///< of each piece of work
  std::vector<std::vector<unsigned>> waits;
  bool repeats = false;
  /// False when the IR has an event that the graph cannot say: recorded on a
  /// stream between a wait and the work that it delays.
  bool exact = true;

  /// Drops every wait that the others imply. Returns how many.
  unsigned reduce();

private:
  bool implied(unsigned from, unsigned to) const;
};

/// Records and waits of a fragment as a graph. Node 0 is the fragment's begin
/// and the last node its end, both on the home stream; instruction i is node
/// i + 1.
EventGraph readEvents(FragmentOp fragment);
/// Replaces a fragment's records and waits by those of the graph.
void writeEvents(FragmentOp fragment, const EventGraph &graph);

/// The same for an action list; action i is node i.
EventGraph readEvents(ActionsOp list);
void writeEvents(ActionsOp list, const EventGraph &graph);

} // namespace reckon::planir

#endif // RECKON_PASSES_PLAN_HAZARDS_H
