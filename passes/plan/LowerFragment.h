//===- LowerFragment.h - a fragment's values to buffers and launches ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_LOWERFRAGMENT_H
#define RECKON_PASSES_PLAN_LOWERFRAGMENT_H

#include "dialect/Dist/Dist.h"
#include "passes/plan/BufferClasses.h"
#include "passes/plan/StageTables.h"

namespace reckon::planir {

/// Lowers one fragment of a stage.
class FragmentLowering {
public:
  FragmentLowering(StageTables &tables, pipe::FragmentOp fragment,
                   mlir::OpBuilder &builder)
      : tables(tables), fragment(fragment), b(builder), classes(fragment) {}

  /// Appends the `plan.fragment`; an error names the op that cannot be lowered.
  mlir::LogicalResult lower();

private:
  // Buffers.
  mlir::Value place(mlir::Value value);
  mlir::Value slotRef(llvm::StringRef slot, int64_t offset,
                      mlir::RankedTensorType type);
  mlir::Value stateRef(llvm::StringRef name, ExprAttr offset, BufferType type);
  mlir::Value wholeState(llvm::StringRef name);
  mlir::Value paddedState(llvm::StringRef name, const StageTables::Flat &flat);
  mlir::Value stateBlock(llvm::StringRef name, const StageTables::Flat &flat);
  int64_t savedOffset(unsigned position, bool argument);

  // Instructions.
  void launch(mlir::Operation *op, llvm::StringRef kernel, mlir::ValueRange ins,
              mlir::ValueRange outs, llvm::ArrayRef<ExprAttr> args = {},
              llvm::ArrayRef<double> floats = {});
  void linearFp8(train::LinearFp8Op op, mlir::Value out, ExprAttr acc);
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult lowerCompute(mlir::Operation *op);
  mlir::LogicalResult lowerAccumulate(train::AccumulateOp op);
  mlir::LogicalResult lowerCollective(mlir::Operation *op);
  mlir::LogicalResult allReduce(dist::AllReduceOp op);
  mlir::LogicalResult reduceScatter(dist::ReduceScatterOp op);
  mlir::LogicalResult slice(dist::SliceOp op);
  mlir::LogicalResult allGather(dist::AllGatherOp op);
  mlir::LogicalResult lowerUpdate(mlir::Operation *op);
  mlir::LogicalResult write(train::WriteOp op);
  mlir::LogicalResult sumSquares(train::SumSquaresOp op);
  mlir::LogicalResult adamw(train::AdamwOp op);

  // Arguments that depend on coordinates.
  ExprAttr constant(int64_t value) {
    return ExprAttr::get(b.getContext(), value);
  }
  /// coordinate(axis) * rows, the first row of this rank's vocabulary.
  mlir::FailureOr<ExprAttr> vocabOffset(mlir::Operation *op, int64_t rows);
  /// 1 where the coordinate of each axis is 0, else 0.
  mlir::FailureOr<ExprAttr> ownerFlag(mlir::Operation *op,
                                      mlir::ArrayAttr axisNames);

  StageTables &tables;
  pipe::FragmentOp fragment;
  mlir::OpBuilder &b;
  BufferClasses classes;
  FragmentOp result;
  /// Buffers by class, values of states and arguments by value.
  llvm::DenseMap<unsigned, mlir::Value> classBuffers;
  llvm::DenseMap<mlir::Value, mlir::Value> placed;
  /// The state whose value (or block of it) a value is.
  llvm::DenseMap<mlir::Value, mlir::StringAttr> stateOf;
  /// References that exist already.
  llvm::DenseMap<std::pair<mlir::Attribute, mlir::Attribute>, mlir::Value> refs;
  /// Gradients that an earlier op of this fragment wrote.
  llvm::DenseSet<mlir::Attribute> accumulated;
};

/// The name that an op's location gives it ("layers.3.q"), or null.
mlir::StringAttr locationName(mlir::Location loc);

} // namespace reckon::planir

#endif // RECKON_PASSES_PLAN_LOWERFRAGMENT_H
