//===- StageTables.h - a stage's tables, while its program is built -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_STAGETABLES_H
#define RECKON_PASSES_PLAN_STAGETABLES_H

#include "dialect/Pipe/Pipe.h"
#include "dialect/Plan/Plan.h"
#include "dialect/Train/Train.h"

#include "llvm/ADT/StringMap.h"

namespace reckon::planir {

using AxisList = llvm::SmallVector<Axis, 5>;

/// The degrees of the job by axis, from the program's config; an error when
/// they are missing.
mlir::FailureOr<llvm::SmallVector<int64_t>>
meshDegrees(pipe::ProgramOp program);

/// Axes by name, fastest first; fails with an error at `op` for a name that is
/// no axis.
mlir::FailureOr<AxisList> parseAxisNames(mlir::Operation *op,
                                         mlir::ArrayAttr names);

/// One stage on its way from `pipe` to `plan`: the program being built, and
/// what lowering needs to know of states, groups and slots.
class StageTables {
public:
  /// How ZeRO splits a parameter: blocks of `elements`, one per rank of `axes`.
  struct Flat {
    AxisList axes;
    int64_t elements = 0;
    int64_t ranks = 1;
  };

  /// Builds the program with all its tables. `groups` are the axes of every
  /// collective of the whole job, so that all stages number groups alike.
  static mlir::FailureOr<StageTables> create(mlir::OpBuilder &builder,
                                             pipe::StageOp stage,
                                             llvm::ArrayRef<int64_t> degrees,
                                             llvm::ArrayRef<AxisList> groups);

  pipe::StageOp stage;
  ProgramOp program;
  llvm::SmallVector<int64_t> degrees;
  /// Offset of each saved value in a stash, in the order of definition.
  llvm::SmallVector<int64_t> savedOffsets;

  /// The state of a name, or null.
  train::StateOp findState(llvm::StringRef name) const {
    return states.lookup(name);
  }
  /// How a parameter (or its gradient) is split for the optimizer; null when
  /// it is not.
  const Flat *findFlat(train::StateOp state) const;
  /// Ranks along all of these axes.
  int64_t ranks(llvm::ArrayRef<Axis> axes) const;
  mlir::FlatSymbolRefAttr group(llvm::ArrayRef<Axis> axes) const;
  /// What moves through a slot class: the type of an argument or result with
  /// that role; null for a class of several values.
  BufferType slotType(pipe::SlotClass slotClass) const {
    return slotTypes.lookup(static_cast<unsigned>(slotClass));
  }

private:
  mlir::LogicalResult addStates(mlir::OpBuilder &builder);
  mlir::LogicalResult addState(mlir::OpBuilder &builder, train::StateOp state);
  mlir::LogicalResult addSlots(mlir::OpBuilder &builder);
  void addChannels(mlir::OpBuilder &builder);

  llvm::StringMap<train::StateOp> states;
  llvm::StringMap<Flat> flats; ///< by parameter
  llvm::DenseMap<unsigned, BufferType> slotTypes;
};

/// The buffer type of a tensor type.
BufferType bufferType(mlir::RankedTensorType type);

/// Symbol of the channel of a direction between two neighbour stages.
std::string channelName(pipe::Direction direction, int64_t source,
                        int64_t target);

} // namespace reckon::planir

#endif // RECKON_PASSES_PLAN_STAGETABLES_H
