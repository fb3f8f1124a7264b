//===- VerifyPartitioned.cpp - verify-partitioned -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"
#include "passes/train/Passes.h"

namespace reckon::dist {
#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

Axes axesOf(ArrayAttr attr) {
  Axes axes;
  if (attr)
    for (Attribute axis : attr)
      axes.push_back(cast<StringAttr>(axis).str());
  return axes;
}

class VerifyPartitionedPass
    : public reckon::dist::impl::VerifyPartitionedBase<VerifyPartitionedPass> {
  LogicalResult verifyState(train::StateOp state, MeshOp mesh) {
    if (!state.getGlobalShape() || !state.getBoxAxes())
      return state.emitOpError("has no global shape; it was not partitioned");
    llvm::SmallVector<int64_t> local;
    for (auto [size, axes] :
         llvm::zip(*state.getGlobalShape(), *state.getBoxAxes())) {
      int64_t ranks = groupSize(mesh, axesOf(cast<ArrayAttr>(axes)));
      if (size % ranks != 0)
        return state.emitOpError() << "global size " << size
                                   << " is not a multiple of " << ranks;
      local.push_back(size / ranks);
    }
    if (Axes flat = axesOf(state.getFlatAxesAttr()); !flat.empty()) {
      int64_t elements = 1;
      for (int64_t size : local)
        elements *= size;
      local = {flatPart(elements, groupSize(mesh, flat))};
    }
    if (state.getTensorType().getShape() != ArrayRef<int64_t>(local))
      return state.emitOpError()
             << "local type " << state.getType()
             << " times its ranks is not the global shape";
    return success();
  }

  LogicalResult verifyGroup(Operation *op, MeshOp mesh) {
    auto axes = op->getAttrOfType<ArrayAttr>("axes");
    auto size = op->getAttrOfType<IntegerAttr>("group_size");
    if (!axes || !size)
      return success();
    int64_t want = groupSize(mesh, axesOf(axes));
    if (size.getInt() != want)
      return op->emitOpError() << "group_size is " << size.getInt()
                               << ", but " << axes << " has " << want
                               << " ranks";
    return success();
  }

  static bool inDecoderLayer(Operation *op) {
    Operation *parent = op->getParentOp();
    if (auto layer = dyn_cast<train::LayerOp>(parent))
      return train::isDecoderLayer(layer.getName());
    auto grad = dyn_cast<train::LayerGradOp>(parent);
    return grad && train::isDecoderLayer(grad.getName());
  }

  void runOnOperation() override {
    train::ProgramOp program = getOperation();
    MeshOp mesh = meshOf(program);
    if (!mesh) {
      program.emitOpError("has no dist.mesh");
      return signalPassFailure();
    }
    for (auto state : program.getBody().getOps<train::StateOp>())
      if (failed(verifyState(state, mesh)))
        return signalPassFailure();
    WalkResult walked = program.walk([&](Operation *op) {
      if (isa<ReshardOp>(op) || op->hasAttr(shardingAttrName)) {
        op->emitOpError("still speaks of shardings after partitioning");
        return WalkResult::interrupt();
      }
      if (program.getPrecision() == "fp8" && inDecoderLayer(op) &&
          isa<train::LinearOp, train::LinearGradInputOp,
              train::LinearGradWeightOp>(op)) {
        op->emitOpError("is not quantized, though the precision is fp8");
        return WalkResult::interrupt();
      }
      if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, SliceOp, AllToAllOp>(
              op) &&
          failed(verifyGroup(op, mesh)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
