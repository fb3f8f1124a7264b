//===- SplitUpdate.h - who owns which state, and the update per stage -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PIPE_SPLITUPDATE_H
#define RECKON_PASSES_PIPE_SPLITUPDATE_H

#include "passes/pipe/Passes.h"

#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringMap.h"

namespace reckon::pipe {

/// The names of the states (or other symbols) that an op refers to.
llvm::SmallVector<llvm::StringRef> referencedSymbols(mlir::Operation *op);

/// Which stages hold a state. A parameter belongs to the stage whose layers
/// read it, its gradient and optimizer states go with it, scalars and metrics
/// are in every stage, and other states are where they are used.
class StateOwners {
public:
  explicit StateOwners(size_t stages) : stages(stages) {}

  /// Notes that an op of this stage's fragments refers to its symbols.
  void use(mlir::Operation *op, size_t stage);
  /// Completes the table for all states of the program. An error names a
  /// parameter that two stages use.
  mlir::LogicalResult complete(train::ProgramOp program);
  /// Whether the stage holds the state.
  bool holds(llvm::StringRef state, size_t stage) const;

private:
  size_t stages;
  llvm::StringMap<llvm::SmallBitVector> owners;
};

/// Copies each op of the update region into the fragments of the stages that
/// own what it works on; `fragments` has one per stage. Of an op on many states
/// (a bucket of a collective, a sum of squares) each stage gets its part.
mlir::LogicalResult splitUpdate(train::UpdateOp update,
                                const StateOwners &owners,
                                llvm::ArrayRef<FragmentOp> fragments);

} // namespace reckon::pipe

#endif // RECKON_PASSES_PIPE_SPLITUPDATE_H
