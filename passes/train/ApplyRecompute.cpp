//===- ApplyRecompute.cpp - train-apply-recompute -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/train/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"

namespace reckon::train {
#define GEN_PASS_DEF_APPLYRECOMPUTE
#include "passes/train/Passes.h.inc"
} // namespace reckon::train

using namespace mlir;
using namespace reckon::train;

namespace {

/// The operations of `block` that `roots` depend on.
llvm::DenseSet<Operation *> dependencies(llvm::ArrayRef<Value> roots) {
  llvm::DenseSet<Operation *> needed;
  llvm::SmallVector<Value> work(roots);
  while (!work.empty()) {
    Operation *op = work.pop_back_val().getDefiningOp();
    if (op && needed.insert(op).second)
      llvm::append_range(work, op->getOperands());
  }
  return needed;
}

/// Makes `grad` read the layer's inputs only, computing again what the layer
/// saved. Returns the layer with its activation as the only result.
void recompute(LayerOp layer, LayerGradOp grad) {
  // Which block argument of the backward stands for which forward value.
  Block &forward = layer.getBody().front();
  Block &old = grad.getBody().front();
  llvm::SmallVector<std::pair<BlockArgument, Value>> uses;
  llvm::SmallVector<Value> roots;
  unsigned kept = 0;
  for (auto [input, argument] :
       llvm::zip(grad.getInputs(), old.getArguments())) {
    if (input.getDefiningOp() == layer) {
      unsigned result = cast<OpResult>(input).getResultNumber();
      uses.push_back({argument, layer.getYield().getValues()[result]});
      roots.push_back(uses.back().second);
      continue;
    }
    auto at = llvm::find(layer.getInputs(), input);
    if (at != layer.getInputs().end())
      uses.push_back({argument, forward.getArgument(
                                    at - layer.getInputs().begin())});
    else
      ++kept; // the cotangent
  }

  llvm::SmallVector<Value> inputs(grad.getInputs().take_front(kept));
  llvm::append_range(inputs, layer.getInputs());
  OpBuilder b(grad);
  auto fresh =
      LayerGradOp::create(b, grad.getLoc(), grad.getResultTypes(),
                          grad.getNameAttr(), inputs, grad.getStageAttr());
  Block &body = fresh.getBody().emplaceBlock();
  IRMapping map;
  for (Value input : inputs)
    body.addArgument(input.getType(), grad.getLoc());
  for (unsigned i = 0; i < kept; ++i)
    map.map(old.getArgument(i), body.getArgument(i));
  for (auto [i, argument] : llvm::enumerate(forward.getArguments()))
    map.map(argument, body.getArgument(kept + i));

  b.setInsertionPointToEnd(&body);
  llvm::DenseSet<Operation *> needed = dependencies(roots);
  for (Operation &op : forward)
    if (needed.contains(&op))
      b.clone(op, map);
  for (auto [argument, value] : uses)
    map.map(argument, map.lookup(value));
  for (Operation &op : old)
    b.clone(op, map);
  grad.replaceAllUsesWith(fresh.getResults());
  grad.erase();

  YieldOp yield = layer.getYield();
  llvm::SmallVector<Value> activation{yield.getValues().front()};
  yield.getValuesMutable().assign(activation);
  b.setInsertionPoint(layer);
  auto slim = LayerOp::create(b, layer.getLoc(), activation.front().getType(),
                              layer.getNameAttr(), layer.getInputs(),
                              layer.getStageAttr());
  slim.getBody().takeBody(layer.getBody());
  layer.getResult(0).replaceAllUsesWith(slim.getResult(0));
  layer.erase();
}

class ApplyRecomputePass
    : public reckon::train::impl::ApplyRecomputeBase<ApplyRecomputePass> {
public:
  using ApplyRecomputeBase::ApplyRecomputeBase;

private:
  void runOnOperation() override {
    if (mode == "none")
      return;
    if (mode != "full") {
      getOperation().emitOpError()
          << "recompute mode must be none or full, got " << mode.getValue();
      return signalPassFailure();
    }
    Block &body = getOperation().getMicrobatch().getBody().front();
    llvm::StringMap<LayerGradOp> grads;
    for (auto grad : body.getOps<LayerGradOp>())
      grads[grad.getName()] = grad;
    for (LayerOp layer : llvm::to_vector(body.getOps<LayerOp>()))
      if (isDecoderLayer(layer.getName()) && grads.count(layer.getName()))
        recompute(layer, grads[layer.getName()]);
  }
};

} // namespace
