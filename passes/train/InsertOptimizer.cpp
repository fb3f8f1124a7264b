//===- InsertOptimizer.cpp - train-insert-optimizer -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/train/Passes.h"

namespace reckon::train {
#define GEN_PASS_DEF_INSERTOPTIMIZER
#include "passes/train/Passes.h.inc"
} // namespace reckon::train

using namespace mlir;
using namespace reckon::train;

namespace {

/// Slots of the step's parameter block: learning rate, the two bias
/// corrections, the step, and room for what later devices read.
constexpr int64_t scalarSlots = 8;

class InsertOptimizerPass
    : public reckon::train::impl::InsertOptimizerBase<InsertOptimizerPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    auto f32 = Float32Type::get(&getContext());
    auto f64 = Float64Type::get(&getContext());
    auto config = program.getConfig();
    auto optimizer =
        config ? config->getAs<DictionaryAttr>("optimizer") : DictionaryAttr();
    if (!optimizer) {
      program.emitOpError("needs config.optimizer to insert the optimizer");
      return signalPassFailure();
    }
    auto number = [&](StringRef key) {
      auto value = optimizer.getAs<FloatAttr>(key);
      if (!value)
        program.emitOpError() << "config.optimizer lacks the number " << key;
      return value;
    };
    FloatAttr beta1 = number("beta1"), beta2 = number("beta2"),
              eps = number("eps"), decay = number("weight_decay"),
              clip = number("clip_grad");
    if (!beta1 || !beta2 || !eps || !decay || !clip)
      return signalPassFailure();

    llvm::SmallVector<StateOp> parameters;
    for (auto state : program.getBody().getOps<StateOp>())
      if (state.getRole() == StateRole::Parameter)
        parameters.push_back(state);
    for (StateRole role : {StateRole::MainWeight, StateRole::Momentum,
                           StateRole::Variance})
      for (StateOp parameter : parameters) {
        RankedTensorType type = parameter.getTensorType();
        if (role == StateRole::MainWeight && type.getElementType() == f32)
          continue;
        insertState(program, parameter.getLoc(),
                    stateName(parameter.getSymName(), role), role,
                    type.clone(f32), parameter);
      }
    Location loc = program.getLoc();
    insertState(program, loc, "scalars", StateRole::Scalars,
                RankedTensorType::get({scalarSlots}, f64));

    OpBuilder b(&program.getBody().front(), program.getBody().front().end());
    auto update = UpdateOp::create(b, loc);
    Block &body = update.getBody().emplaceBlock();
    b.setInsertionPointToEnd(&body);
    auto metrics = FlatSymbolRefAttr::get(&getContext(), "metrics");
    auto scalars = FlatSymbolRefAttr::get(&getContext(), "scalars");
    llvm::SmallVector<Value> gradients;
    for (StateOp parameter : parameters)
      gradients.push_back(ReadOp::create(
          b, parameter.getLoc(), parameter.getTensorType().clone(f32),
          FlatSymbolRefAttr::get(
              &getContext(),
              stateName(parameter.getSymName(), StateRole::Gradient))));
    SumSquaresOp::create(b, loc, metrics, gradients, ArrayAttr());
    ClipFactorOp::create(b, loc, metrics, clip);
    auto zero = b.getF64FloatAttr(0.0);
    for (auto [parameter, gradient] : llvm::zip(parameters, gradients)) {
      auto name = FlatSymbolRefAttr::get(parameter.getSymNameAttr());
      Value fresh = AdamwOp::create(
          b, parameter.getLoc(), parameter.getTensorType(), name, gradient,
          metrics, scalars, beta1, beta2, eps,
          parameter.getDecay() ? decay : zero);
      WriteOp::create(b, parameter.getLoc(), name, fresh);
    }
    YieldOp::create(b, loc);
  }
};

} // namespace
