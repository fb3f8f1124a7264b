//===- Plan.h - the plan dialect ------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Level 4: one program per pipeline stage, with every offset, stream and event.
// docs/levels/plan.md gives the rationale.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PLAN_PLAN_H
#define RECKON_DIALECT_PLAN_PLAN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace reckon::planir {

/// Of every state, slot, lane, and tensor inside a slot or lane, in bytes.
inline constexpr int64_t kAlignment = 256;

/// Degrees and coordinates are arrays by axis: tp, cp, ep, dp, pp.
inline constexpr unsigned kNumAxes = 5;

} // namespace reckon::planir

#include "dialect/Plan/PlanDialect.h.inc"
#include "dialect/Plan/PlanEnums.h.inc"

namespace reckon::planir {

/// scale * coordinate(axis).
struct ExprTerm {
  Axis axis;
  int64_t scale;
  bool operator==(const ExprTerm &) const = default;
};

/// `value` where (coordinate(axis) == equals) != differs.
struct ExprCase {
  Axis axis;
  bool differs;
  int64_t equals;
  int64_t value;
  bool operator==(const ExprCase &) const = default;
};

inline llvm::hash_code hash_value(const ExprTerm &term) {
  return llvm::hash_combine(static_cast<uint32_t>(term.axis), term.scale);
}
inline llvm::hash_code hash_value(const ExprCase &c) {
  return llvm::hash_combine(static_cast<uint32_t>(c.axis), c.differs, c.equals,
                            c.value);
}

} // namespace reckon::planir

#define GET_TYPEDEF_CLASSES
#include "dialect/Plan/PlanTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Plan/PlanAttrs.h.inc"

#include "dialect/Plan/PlanInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialect/Plan/PlanOps.h.inc"

namespace reckon::planir {

/// Where an instruction's operand lies: which state, bound slot or lane, and
/// the bytes [begin, end) it covers there on some rank of the mesh (the union
/// over all ranks, which is exact for constant offsets). A `plan.temp` has no
/// place; its own value stands for it.
struct Place {
  enum class Kind { State, Slot, Lane, Temp };
  Kind kind;
  /// State: its symbol; Slot: the formal slot's name; else null.
  mlir::StringAttr name;
  mlir::Value temp;
  ExprAttr offset;
  int64_t begin = 0, end = 0;

  /// Whether some byte may be common to both.
  bool overlaps(const Place &other) const;
};

/// The place of a buffer made by one of the ref ops or by plan.temp.
Place placeOf(mlir::Value buffer, llvm::ArrayRef<int64_t> degrees);

} // namespace reckon::planir

#endif // RECKON_DIALECT_PLAN_PLAN_H
