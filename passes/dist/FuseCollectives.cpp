//===- FuseCollectives.cpp - dist-fuse-collectives ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"

namespace reckon::dist {
#define GEN_PASS_DEF_FUSECOLLECTIVES
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

bool isTransfer(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, ReduceScatterOp, SliceOp, AllToAllOp>(
      op);
}

/// Why a collective is there does not change what it does.
DictionaryAttr meaning(Operation *op) {
  NamedAttrList attrs(op->getAttrDictionary());
  attrs.erase("origin");
  return attrs.getDictionary(op->getContext());
}

/// Two readers that want the same of one value share one transfer.
void shareTransfers(Block &block) {
  llvm::DenseMap<Value, llvm::SmallVector<Operation *>> readers;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        shareTransfers(inner);
    if (!isTransfer(&op) || op.getNumOperands() != 1)
      continue;
    auto &earlier = readers[op.getOperand(0)];
    auto same = llvm::find_if(earlier, [&](Operation *other) {
      return other->getName() == op.getName() &&
             other->getResultTypes() == op.getResultTypes() &&
             meaning(other) == meaning(&op);
    });
    if (same == earlier.end()) {
      earlier.push_back(&op);
      continue;
    }
    op.replaceAllUsesWith(*same);
    op.erase();
  }
}

/// slice(all_gather(x)) and all_gather(slice(x)) over the same axes are x.
bool elideInverse(Operation *op) {
  Operation *source = op->getOperand(0).getDefiningOp();
  bool pair = source && ((isa<SliceOp>(op) && isa<AllGatherOp>(source)) ||
                         (isa<AllGatherOp>(op) && isa<SliceOp>(source)));
  if (!pair || source->getNumOperands() != 1 ||
      source->getOperand(0).getType() != op->getResult(0).getType() ||
      source->getAttr("axes") != op->getAttr("axes") ||
      source->getAttr("dim") != op->getAttr("dim"))
    return false;
  op->getResult(0).replaceAllUsesWith(source->getOperand(0));
  op->erase();
  if (source->use_empty())
    source->erase();
  return true;
}

/// slice(all_reduce(x)) over the same axes is a reduce-scatter.
bool fuseReduceScatter(SliceOp slice) {
  auto reduce = slice.getInputs()[0].getDefiningOp<AllReduceOp>();
  if (!reduce || reduce.getInputs().size() != 1 ||
      !reduce.getResult(0).hasOneUse() || reduce.getAxes() != slice.getAxes())
    return false;
  OpBuilder b(slice);
  Value part =
      ReduceScatterOp::create(
          b, slice.getLoc(), slice.getResult(0).getType(),
          reduce.getInputs()[0], slice.getAxesAttr(), slice.getGroupSizeAttr(),
          reduce.getReductionAttr(), slice.getDimAttr(), slice.getOriginAttr())
          .getResult(0);
  slice.getResult(0).replaceAllUsesWith(part);
  slice.erase();
  reduce.erase();
  return true;
}

class FuseCollectivesPass
    : public reckon::dist::impl::FuseCollectivesBase<FuseCollectivesPass> {
  void runOnOperation() override {
    for (Block &block : getOperation()->getRegion(0))
      shareTransfers(block);
    llvm::SmallVector<Operation *> transfers;
    getOperation().walk([&](Operation *op) {
      if (isa<SliceOp, AllGatherOp>(op) && op->getNumOperands() == 1)
        transfers.push_back(op);
    });
    for (Operation *op : transfers) {
      auto slice = dyn_cast<SliceOp>(op);
      if (slice && fuseReduceScatter(slice))
        continue;
      elideInverse(op);
    }
  }
};

} // namespace
