//===- Passes.h - the passes of level 3 -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PIPE_PASSES_H
#define RECKON_PASSES_PIPE_PASSES_H

#include "dialect/Pipe/Pipe.h"
#include "dialect/Train/Train.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace reckon::pipe {

#define GEN_PASS_DECL
#include "passes/pipe/Passes.h.inc"

/// registerPipePasses() makes the passes known to pass pipelines by name.
#define GEN_PASS_REGISTRATION
#include "passes/pipe/Passes.h.inc"

} // namespace reckon::pipe

#endif // RECKON_PASSES_PIPE_PASSES_H
