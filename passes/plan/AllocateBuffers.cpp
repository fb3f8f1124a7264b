//===- AllocateBuffers.cpp - plan-allocate-buffers ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/model/IntervalPacker.h"
#include "passes/model/Layout.h"
#include "passes/plan/Passes.h"

#include "llvm/ADT/MapVector.h"

namespace reckon::planir {
#define GEN_PASS_DEF_ALLOCATEBUFFERS
#include "passes/plan/Passes.h.inc"
} // namespace reckon::planir

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

namespace {

/// What packing one fragment needed.
struct FragmentWorkspace {
  uint64_t bytes = 0;
  uint64_t lowerBound = 0;
  uint64_t logits = 0;
};

/// Gives every temporary of a fragment its place in the lane. A buffer lives
/// from the instruction that first writes it to the last that touches it; an
/// instruction's outputs exist before its inputs are freed.
FragmentWorkspace packFragment(FragmentOp fragment) {
  llvm::MapVector<Value, model::Interval> intervals;
  int position = 0;
  for (auto op : fragment.getBody()->getOps<InstructionOpInterface>()) {
    auto touch = [&](Value buffer) {
      if (!buffer.getDefiningOp<TempOp>())
        return;
      auto bytes =
          static_cast<uint64_t>(cast<BufferType>(buffer.getType()).getBytes());
      auto [it, fresh] =
          intervals.insert({buffer, {bytes, position, position}});
      it->second.end = position;
    };
    // Outputs in order, so that equal plans get equal offsets.
    llvm::for_each(op.getOuts(), touch);
    llvm::for_each(op.getIns(), touch);
    ++position;
  }
  SmallVector<model::Interval> list;
  for (auto &[buffer, interval] : intervals)
    list.push_back(interval);
  model::Packing packing = model::packFirstFit(list);

  FragmentWorkspace workspace{packing.total, packing.lowerBound, 0};
  for (auto [entry, offset] : llvm::zip(intervals, packing.offsets)) {
    auto temp = entry.first.getDefiningOp<TempOp>();
    if (temp.getLogits())
      workspace.logits =
          std::max(workspace.logits, model::alignUp(entry.second.bytes));
    OpBuilder builder(temp);
    auto ref =
        LaneRefOp::create(builder, temp.getLoc(), temp.getBuffer().getType(),
                          static_cast<int64_t>(offset));
    temp.replaceAllUsesWith(ref.getBuffer());
    temp.erase();
  }
  for (auto temp :
       llvm::make_early_inc_range(fragment.getBody()->getOps<TempOp>()))
    if (temp.use_empty())
      temp.erase();
  return workspace;
}

class AllocateBuffersPass
    : public reckon::planir::impl::AllocateBuffersBase<AllocateBuffersPass> {
public:
  using AllocateBuffersBase::AllocateBuffersBase;

  void runOnOperation() override {
    ProgramOp program = getOperation();
    Builder builder(&getContext());
    llvm::MapVector<StringAttr, FragmentWorkspace> lanes;
    for (auto fragment : program.getBody()->getOps<FragmentOp>()) {
      FragmentWorkspace workspace = packFragment(fragment);
      if (remarks)
        fragment.emitRemark()
            << "workspace of " << workspace.bytes << " bytes, lower bound "
            << workspace.lowerBound << ", gap "
            << workspace.bytes - workspace.lowerBound;
      FragmentWorkspace &lane = lanes[fragment.getLaneAttr().getAttr()];
      lane.bytes = std::max(lane.bytes, workspace.bytes);
      lane.logits = std::max(lane.logits, workspace.logits);
    }
    model::LayoutInput input;
    for (Operation &op : *program.getBody()) {
      if (auto state = dyn_cast<StateOp>(op)) {
        input.states.push_back(state.getBytes());
      } else if (auto slot = dyn_cast<SlotClassOp>(op)) {
        input.slots.push_back({static_cast<uint64_t>(slot.getBytes()),
                               static_cast<uint64_t>(slot.getCount())});
      } else if (auto lane = dyn_cast<LaneOp>(op)) {
        FragmentWorkspace workspace = lanes[lane.getSymNameAttr()];
        lane.setBytesAttr(builder.getI64IntegerAttr(
            static_cast<int64_t>(model::alignUp(workspace.bytes))));
        lane.setLogitsBytesAttr(builder.getI64IntegerAttr(static_cast<int64_t>(
            std::min(workspace.logits, model::alignUp(workspace.bytes)))));
        input.lanes.push_back(workspace.bytes);
      }
    }
    model::StageLayout layout = model::layoutStage(input);
    auto offset = [&](uint64_t bytes) {
      return builder.getI64IntegerAttr(static_cast<int64_t>(bytes));
    };
    size_t state = 0, slot = 0, lane = 0;
    for (Operation &op : *program.getBody()) {
      if (auto table = dyn_cast<StateOp>(op))
        table.setOffsetAttr(offset(layout.stateOffsets[state++]));
      else if (auto table = dyn_cast<SlotClassOp>(op))
        table.setOffsetAttr(offset(layout.slotOffsets[slot++]));
      else if (auto table = dyn_cast<LaneOp>(op))
        table.setOffsetAttr(offset(layout.laneOffsets[lane++]));
    }
    program.setArenaBytesAttr(offset(layout.arenaBytes));
  }
};

} // namespace
