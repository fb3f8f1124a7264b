//===- Frame.h - a choice whose layers are still to be assigned -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_FRAME_H
#define RECKON_PASSES_SEARCH_ASSIGN_FRAME_H

#include "passes/model/LayerWindow.h"
#include "passes/model/Schedule.h"
#include "passes/search/assign/Assign.h"

#include <map>

namespace reckon::search {

/// One rank with its layers, recomputed as little as memory allows.
struct RankOption {
  bool fits = false;
  double forward = 0, backward = 0; ///< seconds on a micro-batch, all chunks
  double piece = 0;                 ///< model::rampPiece()
  int64_t heavy = 0; ///< layers, without dense ones before those with experts
  std::vector<int64_t> layers, full; ///< of its chunks
  std::vector<model::StageDurations> passes;
  double work() const { return forward + backward; }
};

/// What all methods of assignment ask: the time and the memory of a rank that
/// has certain layers.
class Frame {
public:
  Frame(const model::Choice &base, Evaluator &evaluator, uint64_t limit,
        const AssignOptions &options);

  const model::Choice &base() const { return base_; }
  int64_t ranks() const { return base_.pp; }
  int64_t chunks() const { return base_.v; }
  int64_t stages() const { return base_.stages(); }
  int64_t layers() const { return layers_; }
  double micro() const { return static_cast<double>(base_.numMicroBatches); }
  /// Whether all layers take the same time and memory.
  bool alike() const { return alike_; }
  bool layoutOpen() const { return layoutOpen_; }
  /// Of a model of two kinds, which come first.
  int64_t denseLayers() const { return dense_; }
  /// Virtual stages of a rank, rising.
  const std::vector<int64_t> &stagesOf(int64_t rank) const {
    return stagesOf_[static_cast<size_t>(rank)];
  }
  int64_t least(int64_t stage) const {
    return least_[static_cast<size_t>(stage)];
  }
  int64_t most(int64_t stage) const {
    return most_[static_cast<size_t>(stage)];
  }

  /// Seconds of the pipeline that a step must stay below to be of interest.
  double pipelineCap() const { return pipelineCap_; }
  /// Seconds on a micro-batch that no rank may exceed.
  double rankCap() const { return pipelineCap_ / micro(); }

  /// The rank when its chunks have `counts` layers and `before` layers, or all
  /// dense ones, come before the first of them. Recomputes the first chunks
  /// first, which hold stashes longest.
  RankOption option(int64_t rank, const std::vector<int64_t> &counts,
                    int64_t before);
  RankOption option(int64_t rank, const std::vector<int64_t> &counts,
                    const std::vector<int64_t> &before);

  /// Seconds of the longest path through a rank, at least: its own work and,
  /// of several chunks, what is before and after it in the ramps.
  double path(int64_t rank, const RankOption &o) const {
    return micro() * o.work() + ramps_[static_cast<size_t>(rank)];
  }

  /// At most option(rank, counts, ...).work(), wherever its layers are.
  double quickest(int64_t rank, const std::vector<int64_t> &counts) const;

  /// What an interleaved schedule takes more than its paths because of the
  /// chunks of its first and its last rank, by the formula.
  double ends(const RankOption &first, const RankOption &last) const;

  /// The layout and recomputation of all stages, as short as it can be said.
  model::Choice choice(const std::vector<int64_t> &layout,
                       const std::vector<int64_t> &full) const;

  /// The step of a whole choice; infinite when it breaks a limit or does not
  /// beat what was to be beaten.
  double step(const model::Choice &choice) const;

  /// The step of a whole choice, whatever it is.
  double seconds(const model::Choice &choice) const {
    return evaluator_.timed(choice);
  }

  /// The step that a pipeline of so many seconds has at least, when the busiest
  /// rank's passes take so long and some rank has `held` layers of the heavier
  /// kind.
  double bound(double pipeline, double mostForward, double mostBackward,
               int64_t held) const;
  double beat() const { return options_.beat; }
  /// Seconds of the pipeline that a step below this must stay below.
  double pipelineOf(double step) const;
  const AssignOptions &options() const { return options_; }
  Evaluator &evaluator() const { return evaluator_; }

private:
  void setRamps();
  double quickestStage(int64_t stage, int64_t count, int64_t before) const;
  bool fits(int64_t rank, const std::vector<int64_t> &counts,
            const std::vector<int64_t> &before,
            const std::vector<int64_t> &full);

  const model::Choice base_;
  model::Choice trial_; ///< scratch
  Evaluator &evaluator_;
  uint64_t limit_;
  const AssignOptions options_;
  int64_t layers_, dense_;
  bool alike_, perLayer_, layoutOpen_;
  double pipelineCap_;
  std::vector<std::vector<int64_t>> stagesOf_;
  std::vector<int64_t> least_, most_;
  std::vector<double> ramps_; ///< of path(), by rank
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_FRAME_H
