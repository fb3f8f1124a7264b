//===- BuildBackward.cpp - train-build-backward ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/train/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace reckon::train {
#define GEN_PASS_DEF_BUILDBACKWARD
#include "passes/train/Passes.h.inc"
} // namespace reckon::train

using namespace mlir;
using namespace reckon::train;

namespace {

/// Differentiates one layer.
class LayerDifferentiator {
public:
  LayerDifferentiator(LayerOp layer, OpBuilder &builder)
      : layer(layer), b(builder) {}

  /// Builds the layer's gradient at the builder's place. `dy` is the cotangent
  /// of its activation (null for the head); gives the cotangent of its first
  /// input in `dx` (null where the input is not differentiable).
  LogicalResult run(Value dy, Value &dx);

private:
  void collectSaved();
  void returnSaved();
  LogicalResult buildBody(LayerGradOp grad, bool hasCotangent);
  Value inBackward(Value forward);
  void addCotangent(Value forward, Value cotangent);

  LayerOp layer;
  OpBuilder &b;
  /// Saved values in the order of definition; parameters are not among them.
  llvm::SetVector<Value> saved;
  llvm::DenseMap<Value, Value> backward, cotangents;
  Operation *failed_ = nullptr;
};

bool isRead(Value value) { return value.getDefiningOp<ReadOp>() != nullptr; }

void LayerDifferentiator::collectSaved() {
  llvm::DenseSet<Value> wanted;
  for (Operation &op : layer.getBody().front())
    if (auto vjp = dyn_cast<VjpOpInterface>(op))
      for (Value value : vjp.getSavedForBackward())
        if (!isRead(value))
          wanted.insert(value);
  for (Value argument : layer.getBody().front().getArguments())
    if (wanted.contains(argument))
      saved.insert(argument);
  for (Operation &op : layer.getBody().front())
    for (Value result : op.getResults())
      if (wanted.contains(result))
        saved.insert(result);
}

/// Replaces the layer by one that also returns what its backward reads.
void LayerDifferentiator::returnSaved() {
  YieldOp yield = layer.getYield();
  llvm::SmallVector<Value> values(yield.getValues());
  for (Value value : saved)
    if (!isa<BlockArgument>(value))
      values.push_back(value);
  yield.getValuesMutable().assign(values);
  OpBuilder at(layer);
  auto wider = LayerOp::create(at, layer.getLoc(), TypeRange(ValueRange(values)),
                               layer.getNameAttr(), layer.getInputs(),
                               layer.getStageAttr());
  wider.getBody().takeBody(layer.getBody());
  for (auto [old, fresh] :
       llvm::zip(layer.getResults(), wider.getResults()))
    old.replaceAllUsesWith(fresh);
  layer.erase();
  layer = wider;
}

/// The backward's value for a forward value; parameters are read again.
Value LayerDifferentiator::inBackward(Value forward) {
  if (Value known = backward.lookup(forward))
    return known;
  auto read = forward.getDefiningOp<ReadOp>();
  if (!read) {
    failed_ = forward.getDefiningOp();
    return forward;
  }
  Value again = ReadOp::create(b, read.getLoc(), read.getValue().getType(),
                               read.getStateAttr());
  backward[forward] = again;
  return again;
}

void LayerDifferentiator::addCotangent(Value forward, Value cotangent) {
  Value &sum = cotangents[forward];
  if (!sum) {
    sum = cotangent;
    return;
  }
  sum = AddOp::create(b, cotangent.getLoc(), sum.getType(), sum, cotangent);
}

LogicalResult LayerDifferentiator::buildBody(LayerGradOp grad,
                                             bool hasCotangent) {
  for (Operation &op : llvm::reverse(layer.getBody().front())) {
    auto vjp = dyn_cast<VjpOpInterface>(op);
    llvm::SmallVector<Value> incoming;
    for (Value result : op.getResults())
      incoming.push_back(cotangents.lookup(result));
    bool root = isa<CrossEntropyLossOp>(op);
    if (!vjp || (!root && !incoming.front()))
      continue;
    llvm::SmallVector<Value> outgoing = vjp.buildVjp(
        b, [&](Value value) { return inBackward(value); }, incoming);
    if (failed_)
      return op.emitOpError("its backward reads a value that it does not save");
    for (auto [operand, cotangent] : llvm::zip(op.getOperands(), outgoing)) {
      if (!cotangent)
        continue;
      if (auto read = operand.getDefiningOp<ReadOp>()) {
        OpBuilder::InsertionGuard guard(b);
        if (Operation *maker = cotangent.getDefiningOp())
          b.setInsertionPointAfter(maker);
        AccumulateOp::create(
            b, cotangent.getLoc(),
            FlatSymbolRefAttr::get(
                b.getContext(),
                stateName(read.getState(), StateRole::Gradient)),
            cotangent);
        continue;
      }
      addCotangent(operand, cotangent);
    }
  }
  return success();
}

LogicalResult LayerDifferentiator::run(Value dy, Value &dx) {
  unsigned next = layer.getNumResults(); // saved values come behind
  collectSaved();
  returnSaved();

  // The activation's cotangent first, then the saved values.
  llvm::SmallVector<Value> inputs;
  if (dy)
    inputs.push_back(dy);
  for (Value value : saved) {
    if (auto argument = dyn_cast<BlockArgument>(value))
      inputs.push_back(layer.getInputs()[argument.getArgNumber()]);
    else
      inputs.push_back(layer.getResult(next++));
  }

  Value primal = layer.getInputs().front();
  bool differentiable =
      isa<FloatType>(cast<RankedTensorType>(primal.getType()).getElementType());
  llvm::SmallVector<Type> outputs;
  if (differentiable)
    outputs.push_back(primal.getType());
  auto grad = LayerGradOp::create(b, layer.getLoc(), outputs,
                                  layer.getNameAttr(), inputs, IntegerAttr());
  Block &body = grad.getBody().emplaceBlock();
  for (Value input : inputs)
    body.addArgument(input.getType(), layer.getLoc());

  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&body);
  if (dy)
    cotangents[layer.getYield().getValues().front()] = body.getArgument(0);
  for (auto [i, value] : llvm::enumerate(saved))
    backward[value] = body.getArgument(i + (dy ? 1 : 0));
  if (failed(buildBody(grad, static_cast<bool>(dy))))
    return failure();

  llvm::SmallVector<Value> results;
  if (differentiable) {
    Value cotangent =
        cotangents.lookup(layer.getBody().front().getArgument(0));
    if (!cotangent)
      return layer.emitOpError("no gradient reaches its input");
    results.push_back(cotangent);
  }
  YieldOp::create(b, layer.getLoc(), results);
  dx = differentiable ? grad.getResult(0) : Value();
  return success();
}

class BuildBackwardPass
    : public reckon::train::impl::BuildBackwardBase<BuildBackwardPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    auto f32 = Float32Type::get(&getContext());
    llvm::SmallVector<StateOp> states(program.getBody().getOps<StateOp>());
    for (StateOp state : states)
      if (state.getRole() == StateRole::Parameter)
        insertState(program, state.getLoc(),
                    stateName(state.getSymName(), StateRole::Gradient),
                    StateRole::Gradient, state.getTensorType().clone(f32),
                    state);

    Block &body = program.getMicrobatch().getBody().front();
    OpBuilder b(body.getTerminator());
    llvm::SmallVector<LayerOp> layers(body.getOps<LayerOp>());
    Value cotangent;
    for (LayerOp layer : llvm::reverse(layers)) {
      LayerDifferentiator differentiator(layer, b);
      if (failed(differentiator.run(cotangent, cotangent)))
        return signalPassFailure();
    }
  }
};

} // namespace
