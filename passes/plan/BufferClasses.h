//===- BufferClasses.h - which values of a fragment share a buffer --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_BUFFERCLASSES_H
#define RECKON_PASSES_PLAN_BUFFERCLASSES_H

#include "dialect/Pipe/Pipe.h"
#include "dialect/Train/Train.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace reckon::planir {

/// Bytes of a statically shaped tensor.
int64_t tensorBytes(mlir::Value value);

/// The accumulation that a weight gradient is fused with: its only user. Null
/// for every other op.
train::AccumulateOp fusedAccumulate(mlir::Operation *op);

/// Decides which values of a fragment share a buffer.
///
/// A result takes over an operand's buffer where the kernel works in place, the
/// operand is dead after it, was made in this fragment, is not itself returned,
/// and has the same size; its buffer must not already be a slot. A buffer whose
/// values include a returned one lies in a slot, else in the lane. The planner
/// mirrors these rules (passes/model/FragmentMirror.cpp).
class BufferClasses {
public:
  struct Buffer {
    /// First value, in the order of definitions.
    mlir::Value first;
    /// Number of the fragment's returned operand that lives here, or -1.
    int returned = -1;
    /// Holds the logits at some time.
    bool logits = false;
  };

  explicit BufferClasses(pipe::FragmentOp fragment);

  /// Index of a value's buffer; none for arguments, values of states, and
  /// gradients that go straight into their accumulator.
  std::optional<unsigned> lookup(mlir::Value value) const;
  const Buffer &operator[](unsigned index) const { return buffers[index]; }

  /// Whether the value's bytes are a state's.
  bool isState(mlir::Value value) const { return states.contains(value); }

private:
  void addOp(mlir::Operation *op);
  std::optional<unsigned> reuse(mlir::Operation *op, unsigned result,
                                const llvm::DenseSet<unsigned> &taken) const;
  bool deadAfter(mlir::Value value, mlir::Operation *op) const;

  llvm::SmallVector<Buffer> buffers;
  llvm::DenseMap<mlir::Value, unsigned> index;
  llvm::DenseSet<mlir::Value> states;
  llvm::DenseMap<mlir::Value, int> returned;
};

} // namespace reckon::planir

#endif // RECKON_PASSES_PLAN_BUFFERCLASSES_H
