//===- ElideEvents.cpp - plan-elide-events --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/Hazards.h"
#include "passes/plan/Passes.h"

namespace reckon::planir {
#define GEN_PASS_DEF_ELIDEEVENTS
#include "passes/plan/Passes.h.inc"
} // namespace reckon::planir

using namespace mlir;
using namespace reckon::planir;

namespace {

template <typename OpT> void elide(OpT op) {
  EventGraph graph = readEvents(op);
  if (graph.exact && graph.reduce() > 0)
    writeEvents(op, graph);
}

class ElideEventsPass
    : public reckon::planir::impl::ElideEventsBase<ElideEventsPass> {
  void runOnOperation() override {
    for (Operation &op : *getOperation().getBody()) {
      if (auto fragment = dyn_cast<FragmentOp>(op))
        elide(fragment);
      else if (auto list = dyn_cast<ActionsOp>(op))
        elide(list);
    }
  }
};

} // namespace
