//===- Passes.h - the passes of level 4 -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_PASSES_H
#define RECKON_PASSES_PLAN_PASSES_H

#include "dialect/Plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace reckon::planir {

#define GEN_PASS_DECL
#include "passes/plan/Passes.h.inc"

/// registerPlanPasses() makes the passes known to pass pipelines by name.
#define GEN_PASS_REGISTRATION
#include "passes/plan/Passes.h.inc"

} // namespace reckon::planir

#endif // RECKON_PASSES_PLAN_PASSES_H
