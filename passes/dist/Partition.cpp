//===- Partition.cpp - dist-partition -------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"

namespace reckon::dist {
#define GEN_PASS_DEF_PARTITION
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

ArrayAttr strings(Builder &b, const Axes &axes) {
  llvm::SmallVector<StringRef> names(axes.begin(), axes.end());
  return b.getStrArrayAttr(names);
}

/// The axes with several ranks, other than pp, on which a value is the same
/// everywhere.
Axes replicas(const Sharding &sharding, MeshOp mesh) {
  Axes axes;
  for (const std::string &axis : wideAxes(mesh)) {
    bool split = axis == "pp" || llvm::is_contained(sharding.flat, axis) ||
                 llvm::is_contained(sharding.unreduced, axis);
    for (const Axes &dim : sharding.dims)
      split = split || llvm::is_contained(dim, axis);
    if (!split)
      axes.push_back(axis);
  }
  return axes;
}

class PartitionPass
    : public reckon::dist::impl::PartitionBase<PartitionPass> {
  LogicalResult partitionState(train::StateOp state, MeshOp mesh) {
    Builder b(&getContext());
    Sharding sharding = shardingOf(state);
    RankedTensorType global = state.getTensorType();
    FailureOr<RankedTensorType> local =
        localType(state, global, sharding, mesh);
    if (failed(local))
      return failure();
    llvm::SmallVector<Attribute> box;
    for (const Axes &axes : sharding.dims)
      box.push_back(strings(b, axes));
    state.setGlobalShapeAttr(b.getDenseI64ArrayAttr(global.getShape()));
    state.setBoxAxesAttr(b.getArrayAttr(box));
    if (!sharding.flat.empty())
      state.setFlatAxesAttr(strings(b, sharding.flat));
    state.setReplicaAxesAttr(strings(b, replicas(sharding, mesh)));
    state.setType(*local);
    state->removeAttr(shardingAttrName);
    return success();
  }

  /// Notes on a linear the axes that split each operand, but for dp: replicas
  /// have rows of their own, and quantize them on their own.
  void annotateOperands(Operation *op) {
    Builder b(&getContext());
    llvm::SmallVector<Attribute> operands;
    for (Value operand : op->getOperands()) {
      Axes axes;
      for (const Axes &dim : shardingOf(operand).dims)
        llvm::copy_if(dim, std::back_inserter(axes),
                      [](const std::string &axis) { return axis != "dp"; });
      operands.push_back(strings(b, axes));
    }
    op->setAttr(operandAxesAttrName, b.getArrayAttr(operands));
  }

  /// Notes on operations what their kernels must know of the split.
  void annotate(Operation *op, MeshOp mesh) {
    Builder b(&getContext());
    if (auto norm = dyn_cast<train::SumSquaresOp>(op)) {
      llvm::SmallVector<Attribute> owners;
      for (Value value : norm.getValues())
        owners.push_back(strings(b, replicas(shardingOf(value), mesh)));
      norm.setReplicaAxesAttr(b.getArrayAttr(owners));
    }
    if (auto loss = dyn_cast<train::CrossEntropyLossOp>(op))
      op->setAttr("replica_axes",
                  strings(b, replicas(shardingOf(loss.getLse()), mesh)));
    if (getOperation().getPrecision() == "fp8" &&
        isa<train::LinearOp, train::LinearGradInputOp,
            train::LinearGradWeightOp>(op))
      annotateOperands(op);
    auto rule = dyn_cast<train::ShardingRuleOpInterface>(op);
    if (!rule || !op->getName().hasInterface<train::ShardingRuleOpInterface>())
      return;
    train::ShardingRule letters = rule.getShardingRule();
    auto note = [&](Value value, StringRef text) {
      size_t v = text.find('v');
      if (v == StringRef::npos)
        return;
      Axes axes = shardingOf(value).dims[v];
      if (!axes.empty())
        op->setAttr("vocab_axes", strings(b, axes));
    };
    for (auto [i, operand] : llvm::enumerate(op->getOperands()))
      note(operand, letters.operands[i]);
    for (auto [i, result] : llvm::enumerate(op->getResults()))
      note(result, letters.results[i]);
  }

  void runOnOperation() override {
    train::ProgramOp program = getOperation();
    MeshOp mesh = meshOf(program);
    if (!mesh) {
      program.emitOpError("has no dist.mesh; run dist-apply-spec first");
      return signalPassFailure();
    }
    llvm::SmallVector<std::pair<Value, RankedTensorType>> changes;
    auto plan = [&](Operation *op, Value value) -> LogicalResult {
      FailureOr<RankedTensorType> local =
          localType(op, cast<RankedTensorType>(value.getType()),
                    shardingOf(value), mesh);
      if (succeeded(local))
        changes.push_back({value, *local});
      return local;
    };
    WalkResult walked = program.walk([&](Operation *op) {
      annotate(op, mesh);
      for (Value result : op->getResults())
        if (failed(plan(op, result)))
          return WalkResult::interrupt();
      if (isa<train::LayerOp, train::LayerGradOp>(op))
        for (Value argument : op->getRegion(0).front().getArguments())
          if (failed(plan(op, argument)))
            return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (walked.wasInterrupted())
      return signalPassFailure();
    for (auto state : program.getBody().getOps<train::StateOp>())
      if (failed(partitionState(state, mesh)))
        return signalPassFailure();
    for (auto [value, type] : changes)
      value.setType(type);
    program.walk([](Operation *op) { op->removeAttr(shardingAttrName); });
  }
};

} // namespace
