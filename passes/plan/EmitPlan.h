//===- EmitPlan.h - from the plan dialect to the plan file ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_EMITPLAN_H
#define RECKON_PASSES_PLAN_EMITPLAN_H

#include "runtime/plan/plan_generated.h"

#include "mlir/Support/LLVM.h"

#include <memory>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace reckon::planir {

/// The contents of the plan files of all stages, in order of stages. Equal
/// modules give equal contents. Fails with a diagnostic when a program is not
/// finished (no arena, no streams) or its config lacks what the file needs.
mlir::FailureOr<std::vector<std::unique_ptr<plan::StagePlanT>>>
emitPlan(mlir::ModuleOp module);

} // namespace reckon::planir

#endif // RECKON_PASSES_PLAN_EMITPLAN_H
