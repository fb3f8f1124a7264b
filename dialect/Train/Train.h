//===- Train.h - the train dialect's one public header --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_TRAIN_TRAIN_H
#define RECKON_DIALECT_TRAIN_TRAIN_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace reckon::train {

/// How an operation's tensors share dimensions, one string per tensor and one
/// letter per dimension: linear is {"tk", "nk"} -> {"tn"} with "k" reduced.
/// A '.' is a dimension of its own that is never split.
struct ShardingRule {
  llvm::SmallVector<llvm::StringRef, 6> operands;
  llvm::SmallVector<llvm::StringRef, 3> results;
  /// Contracted letters: splitting one leaves the results unreduced.
  llvm::StringRef reduced = "";
  /// Letters that every rank needs whole.
  llvm::StringRef whole = "";
  /// How partial results combine: "sum" or "max".
  llvm::StringRef reduction = "sum";
  /// Whether sums may stay unreduced across the operation.
  bool linear = false;
};

} // namespace reckon::train

#include "dialect/Train/TrainDialect.h.inc"
#include "dialect/Train/TrainEnums.h.inc"
#include "dialect/Train/TrainInterfaces.h.inc"

#define GET_OP_CLASSES
#include "dialect/Train/TrainOps.h.inc"

namespace reckon::train {

/// The state op of a name, looked up from an operation inside its symbol table;
/// null if there is none.
StateOp lookupState(mlir::Operation *from, mlir::FlatSymbolRefAttr name);

/// `<parameter>#<role>`, the name of a state that belongs to a parameter.
std::string stateName(llvm::StringRef parameter, StateRole role);

/// Number of elements of a statically shaped tensor.
int64_t elementCount(mlir::Value value);

} // namespace reckon::train

#endif // RECKON_DIALECT_TRAIN_TRAIN_H
