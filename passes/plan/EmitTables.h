//===- EmitTables.h - tables of one plan file -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Internal to passes/plan: the parts of a plan file that are not instructions,
// and the helpers that both halves of the emission use.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_EMITTABLES_H
#define RECKON_PASSES_PLAN_EMITTABLES_H

#include "dialect/Plan/Plan.h"
#include "runtime/plan/plan_generated.h"

#include "llvm/ADT/StringMap.h"

namespace reckon::planir {

/// Numbers of a program's table entries by symbol.
struct TableIndex {
  llvm::StringMap<uint32_t> streams, groups, channels, states, slotClasses,
      lanes, fragments;
};

/// "model.yaml:14:3" of the place that an op comes from, or empty.
std::string sourceOf(mlir::Location loc);

std::unique_ptr<plan::ExprT> emitExpr(ExprAttr expr);

/// Fills shape and type of a buffer.
void emitType(BufferType type, plan::BufferT &buffer);

/// Fills everything but fragments and lists; gives the numbers of all symbols.
mlir::FailureOr<TableIndex> emitTables(ProgramOp program,
                                       plan::StagePlanT &file);

} // namespace reckon::planir

#endif // RECKON_PASSES_PLAN_EMITTABLES_H
