//===- Passes.h - passes on the train dialect -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_TRAIN_PASSES_H
#define RECKON_PASSES_TRAIN_PASSES_H

#include "dialect/Train/Train.h"

#include "mlir/Pass/Pass.h"

namespace reckon::train {

#define GEN_PASS_DECL
#include "passes/train/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/train/Passes.h.inc"

/// Adds a state in the order of roles: parameters, gradients, main weights,
/// momentum, variance, buffers, scalars, metrics. The memory layout of a rank
/// follows this order.
StateOp insertState(ProgramOp program, mlir::Location loc,
                    llvm::StringRef name, StateRole role,
                    mlir::RankedTensorType type, StateOp parameter = nullptr);

/// Whether a layer is a decoder layer rather than the embedding or the head.
inline bool isDecoderLayer(llvm::StringRef name) {
  return name.starts_with("layers.");
}

} // namespace reckon::train

#endif // RECKON_PASSES_TRAIN_PASSES_H
