//===- VerifySharded.cpp - verify-sharded ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"

namespace reckon::dist {
#define GEN_PASS_DEF_VERIFYSHARDED
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

/// Whether an operation may read a partial result.
bool acceptsPartial(Operation *op) {
  if (isa<ReshardOp, train::AccumulateOp>(op))
    return true;
  auto rule = dyn_cast<train::ShardingRuleOpInterface>(op);
  return rule && rule.getShardingRule().linear;
}

class VerifyShardedPass
    : public reckon::dist::impl::VerifyShardedBase<VerifyShardedPass> {
  LogicalResult verifyOp(Operation *op, MeshOp mesh) {
    if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, SliceOp, AllToAllOp>(
            op))
      return op->emitOpError("is communication before partitioning");
    for (OpResult result : op->getResults()) {
      if (!op->hasAttr(shardingAttrName))
        return op->emitOpError() << "result " << result.getResultNumber()
                                 << " has no sharding";
      auto type = cast<RankedTensorType>(result.getType());
      Sharding sharding = shardingOf(result);
      if (static_cast<int64_t>(sharding.dims.size()) != type.getRank())
        return op->emitOpError()
               << "sharding " << sharding.str() << " does not fit " << type;
      if (failed(localType(op, type, sharding, mesh)))
        return failure();
    }
    for (Value operand : op->getOperands()) {
      Sharding sharding = shardingOf(operand);
      if (!sharding.unreduced.empty() && !acceptsPartial(op))
        return op->emitOpError() << "reads a partial result, sharded "
                                 << sharding.str();
    }
    return success();
  }

  void runOnOperation() override {
    train::ProgramOp program = getOperation();
    MeshOp mesh = meshOf(program);
    if (!mesh) {
      program.emitOpError("has no dist.mesh");
      return signalPassFailure();
    }
    for (auto state : program.getBody().getOps<train::StateOp>())
      if (failed(localType(state, state.getTensorType(), shardingOf(state),
                           mesh)))
        return signalPassFailure();
    WalkResult walked = program.walk([&](Operation *op) {
      return failed(verifyOp(op, mesh)) ? WalkResult::interrupt()
                                        : WalkResult::advance();
    });
    if (walked.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
