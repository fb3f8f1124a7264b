//===- States.cpp - adding states in the order of roles -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/train/Passes.h"

using namespace mlir;

namespace reckon::train {

StateOp insertState(ProgramOp program, Location loc, StringRef name,
                    StateRole role, RankedTensorType type, StateOp parameter) {
  Block &body = program.getBody().front();
  auto place = llvm::find_if(body, [&](Operation &op) {
    auto state = dyn_cast<StateOp>(op);
    return !state || state.getRole() > role;
  });
  OpBuilder b(&body, place);
  auto state = StateOp::create(b, loc, name, role, type);
  if (parameter)
    state.setParameter(parameter.getSymName());
  return state;
}

} // namespace reckon::train
