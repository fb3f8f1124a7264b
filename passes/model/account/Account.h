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

#include "passes/model/Schedule.h"
#include "passes/model/account/Accountant.h"
#include "passes/model/account/Activations.h"
#include "passes/model/account/States.h"
#include "passes/model/schedule/Given.h"

namespace reckon::model {

/// Layers of a virtual stage.
struct ChunkLayers {
  int64_t dense = 0, moe = 0;
  int64_t recomputed = 0; ///< of them, fully; the dense ones first
  bool first = false, last = false;

  int64_t layers() const { return dense + moe; }
  auto operator<=>(const ChunkLayers &) const = default;
};

/// Every virtual stage of a choice.
std::vector<ChunkLayers> chunksOf(const ModelShape &model,
                                  const Choice &choice);

/// Workspace of a fragment of reckon's, and the logits in it.
struct LaneBytes {
  uint64_t lane = 0, logits = 0;
};

struct ChoiceFrame;

/// Knows the fragments of reckon's chunks.
class LaneSource {
public:
  virtual LaneBytes laneOf(const ChoiceFrame &frame,
                           const ChunkLayers &chunk) = 0;
  /// Whether they are those that the compiler emits.
  virtual bool mirrors(const ChoiceFrame &frame) const = 0;

protected:
  ~LaneSource() = default;
};

/// A choice, ready to be accounted for rank by rank.
struct ChoiceFrame {
  const Job &job;
  const Choice &choice;
  const MemoryProfile &profile;
  const ActivationBytes &activations;
  StateTable &states;
  ScheduleShape shape;
  bool defined = true; ///< the schedule has an order of its own
  const GivenSchedule *given = nullptr; ///< or was given one
  bool exact = false;                   ///< what the compiler would allocate
  std::vector<ChunkLayers> chunks;      ///< by virtual stage
  LaneSource *lanes = nullptr;          ///< only reckon

  int64_t stageOf(int64_t rank, int64_t chunk) const {
    return given ? given->orders.stage(rank, chunk)
                 : stageOfChunk(shape.kind, shape.p, shape.v, rank, chunk);
  }
  RankParts parts(int64_t rank) const;
  /// The widest of the chunks that a rank runs in turn.
  LaneBytes lane(int64_t rank) const;
};

/// Bytes of one chunk's stash of one micro-batch: everything kept from the
/// forward to the backward.
uint64_t stashBytes(const ChoiceFrame &frame, const ChunkLayers &chunk);

/// The most that the stashes of a rank hold at once.
struct PeakStash {
  uint64_t bytes = 0;
  int64_t count = 0; ///< most stashes at once, chunks counted apart
};
PeakStash peakStash(const ChoiceFrame &frame, int64_t rank);

/// Bytes of one chunk that a split backward frees at different times; without
/// a split the first two are freed together and `gradient` is not held.
struct SplitStash {
  uint64_t toInput = 0;  ///< from F to the end of I
  uint64_t toWeight = 0; ///< from F to the end of W
  uint64_t gradient = 0; ///< from I to the end of W
};
SplitStash splitStash(const ChoiceFrame &frame, const ChunkLayers &chunk);

/// Sums by category.
class SumSink {
public:
  template <typename Formula>
  void add(MemoryCategory category, uint64_t bytes, MemoryBasis, const char *,
           Formula &&) {
    sums_[static_cast<size_t>(category)] += bytes;
  }
  StageMemory memory() const {
    return {.parameters = sums_[0],
            .gradients = sums_[1],
            .optimizer = sums_[2],
            .activations = sums_[3],
            .logits = sums_[4],
            .communication = sums_[5],
            .workspace = sums_[6],
            .reserve = sums_[7]};
  }
  /// All but the reserve.
  uint64_t arena() const {
    uint64_t sum = 0;
    for (size_t category = 0; category < 7; ++category)
      sum += sums_[category];
    return sum;
  }

private:
  uint64_t sums_[8] = {};
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

/// Every line of the rank by closed forms. For SumSink and ItemSink.
template <typename Sink>
void accountRank(const ChoiceFrame &frame, int64_t rank, Sink &sink);

/// See Accountant::timeline().
MemoryTimeline timelineOf(const ChoiceFrame &frame, int64_t rank,
                          const TimelineDurations &durations);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_ACCOUNT_H
