//===- States.h - parameters, gradients and optimizer of a rank -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_STATES_H
#define RECKON_PASSES_MODEL_ACCOUNT_STATES_H

#include "passes/model/Job.h"
#include "passes/model/account/MemoryProfile.h"
#include "passes/model/account/Tensors.h"

#include <deque>
#include <utility>

namespace reckon::model {

struct StateBytes {
  uint64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t elements = 0;        ///< of the rank before sharding, no padding
  int64_t expertElements = 0;  ///< part of them
  int64_t paddingElements = 0; ///< added to them
  uint64_t unitBytes = 0; ///< ZeRO-3: whole weights and gradients of layers
                          ///< while they run
};

/// States of the ranks of one choice but for its layout. Groups: dense
/// parameters are sharded over d = DP CP, experts over TP CP DP / (EP ETP).
///
/// - reckon: every parameter by itself, padded to whole shards, all buffers
///   aligned to 256 bytes; bf16 weights 2, gradients 4, optimizer 12.
/// - megatron: one flat buffer per group. A parameter starts at a multiple of
///   64 elements, a bucket (40 M elements or 1 M d, the larger) ends at a
///   multiple of lcm(d, 128). Only with ZeRO-1; otherwise nothing is padded.
/// - deepspeed: ZeRO-3 pads every parameter to d; those of less than 100 000
///   elements stay whole.
/// - torchtitan: FSDP2 pads the rows of every parameter to d.
class StateTable {
public:
  /// Keeps references to all but the choice.
  StateTable(const Job &job, const MemoryProfile &profile,
             const TensorTable &tensors, const Choice &choice);

  const TensorTable &tensors() const { return tensors_; }
  int64_t denseShards() const { return shards_; }
  int64_t expertShards() const { return expertShards_; }
  /// Not thread-safe: remembers the answer.
  const StateBytes &rank(const RankParts &parts);

private:
  struct Padded {
    int64_t padded = 0; ///< elements of the whole buffer
    int64_t shard = 0;  ///< of the own part
  };
  /// Parameters of a rank in the order of registration: a part of the model
  /// and how often it comes.
  struct Run {
    const std::vector<RankTensor> *tensors;
    int64_t times;
  };
  /// Whether a rank holds only its part of the weights between layers.
  bool shardsWeights() const {
    return zero_ >= 3 ||
           (zero_ == 2 && representation_ == Representation::TorchTitan);
  }
  StateBytes compute(const RankParts &parts) const;
  Padded pad(const std::vector<Run> &runs, bool expert) const;
  Padded padBuckets(const std::vector<Run> &runs, bool expert) const;
  std::vector<Run> runsOf(const RankParts &parts) const;
  /// Of the decoder layers alone.
  int64_t layerElements(const RankParts &parts, bool expert) const;
  void reckon(const std::vector<Run> &runs, StateBytes &bytes) const;

  const ModelShape &model_;
  const MemoryProfile &profile_;
  Representation representation_;
  Precision precision_;
  bool unitRelease_;
  bool reduceBf16_;
  int64_t zero_, pp_, shards_, expertShards_;
  const TensorTable &tensors_;
  std::deque<std::pair<RankParts, StateBytes>> known_;
};

/// d: the ranks that share the dense states.
inline int64_t denseShardsOf(const Choice &choice) {
  return choice.dp * choice.cp;
}

/// See MemoryProfile::unitGradient.
inline bool isUnitRelease(const MemoryProfile &profile, const Job &job,
                          const Choice &choice) {
  return profile.unitGradient > 0 && job.model.layers % choice.stages() != 0 &&
         (job.model.layers + 2) % choice.stages() == 0;
}

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_STATES_H
