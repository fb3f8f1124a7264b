//===- Pipe.h - level 3: one program per pipeline stage -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PIPE_PIPE_H
#define RECKON_DIALECT_PIPE_PIPE_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <optional>

#include "dialect/Pipe/PipeDialect.h.inc"
#include "dialect/Pipe/PipeEnums.h.inc"

namespace reckon::pipe {
class ActionsOp;
class FragmentOp;
class ProgramOp;
class ReturnOp;
class StageOp;

/// The slot class that values of a role live in; none for an unknown role.
/// Roles are the names of the classes, except that "saved" lives in a stash.
std::optional<SlotClass> slotClassOfRole(llvm::StringRef role);

/// The number of the channel that carries messages between `stage` and its
/// neighbour above (forward sends, backward receives) or below, by direction:
/// 2s for s to s + 1 and 2s + 1 for s + 1 to s.
inline int64_t channelOf(int64_t lowerStage, Direction direction) {
  return 2 * lowerStage + (direction == Direction::Backward ? 1 : 0);
}
} // namespace reckon::pipe

#define GET_ATTRDEF_CLASSES
#include "dialect/Pipe/PipeAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialect/Pipe/PipeOps.h.inc"

#endif // RECKON_DIALECT_PIPE_PIPE_H
