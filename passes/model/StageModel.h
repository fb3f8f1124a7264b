//===- StageModel.h - the memory of a stage, to the byte ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Mirrors, at the level of buffers, the fragments that the compiler emits for
// a stage, so that `reckon plan` knows every rank's arena without building
// IR. `reckon compile` compares both and stops when they differ.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_STAGEMODEL_H
#define RECKON_PASSES_MODEL_STAGEMODEL_H

#include "passes/model/ActionList.h"
#include "passes/model/Dims.h"
#include "passes/model/Layout.h"
#include "passes/model/ParameterTable.h"

#include <map>
#include <tuple>

namespace reckon::model {

/// The model's part on one stage, as far as its fragments' buffers depend on
/// it.
struct StageShape {
  int64_t layers = 0; ///< decoder layers
  bool first = false; ///< has the embedding
  bool last = false;  ///< has the head and the loss
  int64_t tp = 1;
  bool sequenceParallel = false;
  int64_t microBatch = 1;
  Precision precision = Precision::Bf16;
  Recompute recompute = Recompute::None;

  auto key() const {
    return std::tuple(layers, first, last, tp, sequenceParallel, microBatch,
                      precision, recompute);
  }
};

/// Buffers of a stage's fragments, in bytes.
struct FragmentMemory {
  std::vector<uint64_t> saved; ///< tensors of one stash, in order, unaligned
  uint64_t stashBytes = 0;     ///< aligned
  uint64_t forwardWorkspace = 0;
  uint64_t backwardWorkspace = 0;
  /// No packing of the backward's buffers is smaller.
  uint64_t backwardLowerBound = 0;
  uint64_t logitsBytes = 0; ///< part of the backward's workspace

  uint64_t laneBytes() const {
    return std::max(forwardWorkspace, backwardWorkspace);
  }
};

FragmentMemory fragmentMemory(const ModelDims &dims, const StageShape &shape);

/// Bytes of a rank of one stage by the contract's categories. Their sum
/// without the reserve is the arena.
struct StageMemory {
  uint64_t parameters = 0;
  uint64_t gradients = 0;
  uint64_t optimizer = 0; ///< main weights, momentum, variance
  uint64_t activations = 0;
  uint64_t logits = 0;
  uint64_t communication = 0;
  uint64_t workspace = 0; ///< transient values, tables, scalars, metrics
  uint64_t reserve = 0;   ///< driver and libraries; not in the arena

  uint64_t arena() const {
    return parameters + gradients + optimizer + activations + logits +
           communication + workspace;
  }
  uint64_t total() const { return arena() + reserve; }
};

enum class StateRole {
  Parameter,
  Gradient,
  MainWeight,
  Momentum,
  Variance,
  Buffer,
  Scalars,
  Metrics
};

/// One state of a rank; `bytes` before alignment.
struct StateSize {
  std::string name;
  StateRole role = StateRole::Parameter;
  uint64_t bytes = 0;
};

/// Everything about the arena of one stage.
struct StageArena {
  std::vector<StateSize> states;
  /// Bytes of one slot (unaligned) and counts, by SlotClassId; classes with no
  /// bytes or no slots are not laid out.
  std::array<SlotClassSize, kNumSlotClasses> slots{};
  FragmentMemory fragments;
  StageLayout layout;
  StageMemory memory;
};

/// Memory of the stages of one model. Remembers what it computed, since a
/// search asks for the same stage under many choices. Not thread-safe.
class StageModel {
public:
  StageModel(ModelDims dims, uint64_t reserveBytes);

  const ModelDims &dims() const { return dims_; }

  /// Memory of a rank of `stage`; `choice` must divide the model evenly.
  StageMemory memory(const Choice &choice, int64_t stage);

  /// The same with names, offsets and slots; equal to memory() to the byte.
  StageArena arena(const Choice &choice, int64_t stage);

  const FragmentMemory &fragments(const StageShape &shape);

private:
  /// Bytes of states by role, aligned: parameters, gradients, optimizer.
  struct StateBytes {
    uint64_t parameters = 0, gradients = 0, optimizer = 0;
  };
  const StateBytes &stateBytes(const Choice &choice, int64_t stage);
  std::array<SlotClassSize, kNumSlotClasses> slotSizes(const Choice &choice,
                                                       int64_t stage);
  FragmentMemory makeFragments(const StageShape &shape);

  ModelDims dims_;
  uint64_t reserveBytes_;
  std::vector<Parameter> embedding_, layer_, head_;
  std::map<decltype(StageShape().key()), FragmentMemory> fragments_;
  std::map<std::tuple<int64_t, int64_t, int64_t, bool, bool, Precision>,
           StateBytes>
      states_;
};

/// cluster.memory_reserve_gib in bytes.
inline uint64_t reserveBytes(const Spec &spec) {
  return static_cast<uint64_t>(*spec.cluster.memoryReserveGib * 1073741824.0);
}

/// The part of `choice` that falls on `stage`.
StageShape stageShape(const Choice &choice, int64_t stage);

/// Local elements that one rank of a ZeRO-1 group of `dp` updates:
/// ceil(n / dp). The whole parameter is padded to dp times that.
constexpr int64_t shardElements(int64_t elements, int64_t dp) {
  return (elements + dp - 1) / dp;
}

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_STAGEMODEL_H
