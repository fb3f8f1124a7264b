//===- Accountant.h - where every byte of a rank goes ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The memory of any job under any choice, in the terms of reckon itself or of
// another framework (Job::representation). Choices that the compiler can lower
// are accounted by StageModel, which equals what is compiled to the byte; all
// else by closed forms with the numbers of memory_profiles.csv.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_ACCOUNTANT_H
#define RECKON_PASSES_MODEL_ACCOUNT_ACCOUNTANT_H

#include "passes/model/Job.h"
#include "passes/model/Schedule.h"
#include "passes/model/StageModel.h"
#include "passes/model/account/MemoryProfile.h"

#include <memory>
#include <string>
#include <vector>

namespace reckon::model {

enum class MemoryCategory {
  Parameters,
  Gradients,
  Optimizer,
  Activations,
  Logits,
  Communication,
  Workspace,
  Reserve
};
/// The key of the report: `parameters`, `gradients`, ...
const char *toString(MemoryCategory category);

/// Where a number comes from. Exact: the sizes of the tensors and nothing
/// else. Calibrated: a constant of the memory profile is in it. Reserve: given
/// by the user or the accelerator.
enum class MemoryBasis { Exact, Calibrated, Reserve };
const char *toString(MemoryBasis basis);

/// One line of the account of a rank.
struct MemoryItem {
  MemoryCategory category = MemoryCategory::Workspace;
  std::string name;
  uint64_t bytes = 0;
  MemoryBasis basis = MemoryBasis::Exact;
  std::string formula; ///< with its numbers
};

/// Bytes that a rank holds from `time` on.
struct MemoryPoint {
  double time = 0;
  /// start, warm-up, steady, cool-down, gradients (reduction over the
  /// data-parallel ranks), optimizer, end.
  const char *phase = "start";
  uint64_t states = 0;      ///< parameters, gradients, optimizer, reserve
  uint64_t activations = 0; ///< stashes of micro-batches in flight
  uint64_t temporary = 0;   ///< buffers, and what the running pass needs
  uint64_t total() const { return states + activations + temporary; }
};

struct MemoryTimeline {
  int64_t ppRank = 0;
  std::vector<MemoryPoint> points; ///< by rising time
  /// Micro-batches that the points show: of many only the first ones and the
  /// last ones are simulated, since those between repeat the same pattern.
  int64_t microBatches = 0;

  uint64_t peak() const;
};

/// What a timeline's times are made of; by default a forward of a chunk takes
/// one unit, a backward two, and so do reduction and optimizer.
struct TimelineDurations {
  /// One entry a virtual stage, or none for the default.
  std::vector<StageDurations> stages;
  double transfer = 0;
  double gradients = 2;
  double optimizer = 2;
};

/// The fullest rank of a choice.
struct PeakMemory {
  uint64_t arena = 0; ///< without the reserve
  int64_t ppRank = 0; ///< the first that is so full
};

/// Accounts for the choices of one job. Remembers what choices have in common.
/// Not thread-safe.
class Accountant {
public:
  explicit Accountant(const Job &job);
  /// With another profile than the job's.
  Accountant(const Job &job, MemoryProfile profile);
  ~Accountant();
  Accountant(Accountant &&) noexcept;
  Accountant &operator=(Accountant &&) noexcept;

  const Job &job() const;
  const MemoryProfile &profile() const;

  /// Whether memory() is what `reckon compile` allocates, to the byte.
  bool exact(const Choice &choice) const;

  /// Bytes of a rank of pipeline rank `ppRank`, by category.
  /// `choice.layout` has pp * v entries.
  StageMemory memory(const Choice &choice, int64_t ppRank);

  /// The same, itemised: the items of a category sum to its bytes.
  std::vector<MemoryItem> items(const Choice &choice, int64_t ppRank);

  /// Largest memory().arena() of all pipeline ranks; visits only ranks that
  /// can be the fullest. Above `enough` any rank that exceeds it will do.
  PeakMemory peak(const Choice &choice, uint64_t enough = UINT64_MAX);

  /// A valid lower bound of peak().arena over all layouts, schedules, numbers
  /// of micro-batches and recompute modes of a choice's degrees: the states of
  /// an even share of the layers.
  uint64_t lowerBound(const Choice &choice);

  /// Memory of a pipeline rank over one step. Its peak() is memory().total(),
  /// or less where a rank's largest stash and its logits never meet.
  MemoryTimeline timeline(const Choice &choice, int64_t ppRank,
                          const TimelineDurations &durations = {});

  struct Impl;

private:
  std::unique_ptr<Impl> impl_;
};

/// Decoder layers of each virtual stage when a spec leaves them open: as
/// evenly as possible, or as the framework of the memory profile does it.
std::vector<int64_t> defaultLayout(const Job &job, const MemoryProfile &profile,
                                   const Choice &choice);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_ACCOUNTANT_H
