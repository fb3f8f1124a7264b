//===- Account.h - the account of one rank, line by line ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Internal to passes/model/account. One walk over the lines serves the search,
// which only sums them, and the report, which prints them.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_ACCOUNT_H
#define RECKON_PASSES_MODEL_ACCOUNT_ACCOUNT_H

#include "passes/model/account/Accountant.h"
#include "passes/model/account/Activations.h"
#include "passes/model/account/InFlight.h"
#include "passes/model/account/States.h"

#include <map>

namespace reckon::model {

/// What the ranks of a choice have in common, and what its layout does not
/// change.
struct ChoiceFrame {
  ChoiceFrame(const Job &job, const MemoryProfile &profile,
              const Choice &choice);

  MemoryProfile profile;
  StateTable states;
  ActivationBytes activations;
  /// By pipeline rank, when asked for.
  std::map<int64_t, std::vector<LiveVector>> live;
};

/// Layers of a chunk.
struct ChunkLayers {
  int64_t dense = 0, moe = 0;
  int64_t recomputed = 0; ///< of them, fully
  bool first = false, last = false;
};

/// Chunks of a pipeline rank, in the order of its forward.
std::vector<ChunkLayers> chunksOf(const Job &job, const Choice &choice,
                                  int64_t ppRank);

/// Bytes of one chunk's stash of one micro-batch.
uint64_t stashBytes(const ActivationBytes &bytes, const Choice &choice,
                    const ChunkLayers &chunk);

/// Slots beside the stash that a micro-batch in flight holds.
uint64_t inFlightBytes(const ActivationBytes &bytes,
                       const MemoryProfile &profile, const Choice &choice,
                       const ChunkLayers &chunk);

/// Sums by category.
class SumSink {
public:
  template <typename Formula>
  void add(MemoryCategory category, uint64_t bytes, MemoryBasis, const char *,
           Formula &&) {
    switch (category) {
    case MemoryCategory::Parameters:
      memory.parameters += bytes;
      break;
    case MemoryCategory::Gradients:
      memory.gradients += bytes;
      break;
    case MemoryCategory::Optimizer:
      memory.optimizer += bytes;
      break;
    case MemoryCategory::Activations:
      memory.activations += bytes;
      break;
    case MemoryCategory::Logits:
      memory.logits += bytes;
      break;
    case MemoryCategory::Communication:
      memory.communication += bytes;
      break;
    case MemoryCategory::Workspace:
      memory.workspace += bytes;
      break;
    case MemoryCategory::Reserve:
      memory.reserve += bytes;
      break;
    }
  }

  StageMemory memory;
};

/// Keeps the lines.
class ItemSink {
public:
  template <typename Formula>
  void add(MemoryCategory category, uint64_t bytes, MemoryBasis basis,
           const char *name, Formula &&formula) {
    if (bytes)
      items.push_back({category, name, bytes, basis, formula()});
  }

  std::vector<MemoryItem> items;
};

/// Every line of the rank by closed forms.
template <typename Sink>
void accountRank(const Job &job, ChoiceFrame &frame, const Choice &choice,
                 int64_t ppRank, Sink &sink);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_ACCOUNT_H
