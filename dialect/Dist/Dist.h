//===- Dist.h - the dist dialect's one public header ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_DIST_DIST_H
#define RECKON_DIALECT_DIST_DIST_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/Dist/DistDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Dist/DistAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/Dist/DistOps.h.inc"

namespace reckon::dist {

/// Name of the discardable attribute that holds the shardings of an operation's
/// results (or of a state) before partitioning.
inline constexpr llvm::StringLiteral shardingAttrName = "dist.sharding";

/// Parts of `elements` values padded to `parts` equal ones.
inline int64_t flatPart(int64_t elements, int64_t parts) {
  return (elements + parts - 1) / parts;
}

} // namespace reckon::dist

#endif // RECKON_DIALECT_DIST_DIST_H
