//===- VerifyTrain.cpp - verify-train -------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/train/Passes.h"

#include "llvm/ADT/StringMap.h"

namespace reckon::train {
#define GEN_PASS_DEF_VERIFYTRAIN
#include "passes/train/Passes.h.inc"
} // namespace reckon::train

using namespace mlir;
using namespace reckon::train;

namespace {

struct Counts {
  unsigned accumulated = 0, inNorm = 0, updated = 0;
};

class VerifyTrainPass
    : public reckon::train::impl::VerifyTrainBase<VerifyTrainPass> {
  LogicalResult verifyParameters(ProgramOp program) {
    llvm::StringMap<Counts> counts;
    program.walk([&](Operation *op) {
      if (auto accumulate = dyn_cast<AccumulateOp>(op))
        ++counts[accumulate.getState()].accumulated;
      if (auto norm = dyn_cast<SumSquaresOp>(op))
        for (Value value : norm.getValues())
          if (auto read = value.getDefiningOp<ReadOp>())
            ++counts[read.getState()].inNorm;
      if (auto adamw = dyn_cast<AdamwOp>(op))
        if (auto read = adamw.getGradient().getDefiningOp<ReadOp>())
          if (read.getState() ==
              stateName(adamw.getParameter(), StateRole::Gradient))
            ++counts[read.getState()].updated;
    });
    for (auto state : program.getBody().getOps<StateOp>()) {
      if (state.getRole() != StateRole::Parameter)
        continue;
      Counts c = counts[stateName(state.getSymName(), StateRole::Gradient)];
      if (c.accumulated != 1 || c.inNorm != 1 || c.updated != 1)
        return state.emitOpError()
               << "must be accumulated, counted in the norm and updated once "
                  "each, got "
               << c.accumulated << ", " << c.inNorm << " and " << c.updated;
    }
    return success();
  }

  LogicalResult verifyLayers(ProgramOp program) {
    Block &body = program.getMicrobatch().getBody().front();
    llvm::SmallVector<StringRef> forward, backward;
    for (auto layer : body.getOps<LayerOp>()) {
      forward.push_back(layer.getName());
      for (OpResult result : layer.getResults())
        if (result.use_empty())
          return layer.emitOpError()
                 << "result " << result.getResultNumber()
                 << " is saved but never read";
    }
    for (auto grad : body.getOps<LayerGradOp>())
      backward.push_back(grad.getName());
    std::reverse(backward.begin(), backward.end());
    if (forward != backward)
      return program.emitOpError(
          "layer gradients do not mirror the layers in reverse");
    return success();
  }

  void runOnOperation() override {
    if (failed(verifyParameters(getOperation())) ||
        failed(verifyLayers(getOperation())))
      signalPassFailure();
  }
};

} // namespace
