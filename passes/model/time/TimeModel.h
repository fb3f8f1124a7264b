//===- TimeModel.h - predicted time of a step -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The one time model: the search, the report and what-if questions use it.
// Layers are priced once for each way of splitting them and remembered, so
// that pricing a choice costs one addition a virtual stage. An object belongs
// to one thread; copies are independent.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_TIMEMODEL_H
#define RECKON_PASSES_MODEL_TIME_TIMEMODEL_H

#include "passes/model/time/Layer.h"
#include "passes/model/time/Optimizer.h"
#include "passes/model/time/Pipeline.h"
#include "passes/model/time/StepTime.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace reckon::model {

/// Seconds of one virtual stage and one micro-batch, exposed tensor, context
/// and expert communication included.
struct StageTime {
  double forward = 0;
  double inputGrad = 0; ///< with recomputation and communication
  double weightGrad = 0;
  double backward() const { return inputGrad + weightGrad; }
};

/// What is known of a choice before it is complete.
struct PartialChoice {
  int64_t tp = 1, cp = 1, pp = 1, dp = 1, ep = 1, etp = 1, microBatch = 1;
};

/// What a step takes at least while the layers and the recomputation of its
/// stages are open: scale * (what the pipeline takes) + fixed.
struct AssignmentCost {
  double scale = 1;
  double fixed = 0; ///< seconds
};

/// The largest parts of a rank's work that one pass can be.
struct PassShares {
  double forward = 1;
  double backward = 1;
};

class TimeModel {
public:
  explicit TimeModel(const Job &job);
  /// With constants other than the built-in ones.
  TimeModel(const Job &job, const std::vector<EfficiencyRow> &table);
  ~TimeModel();
  TimeModel(const TimeModel &other);
  TimeModel(TimeModel &&) noexcept;
  TimeModel &operator=(const TimeModel &) = delete;

  /// The report of one choice; `layout` may be empty for even stages.
  StepTime step(const Choice &choice) const;
  /// step(choice).step: the same bits, but that chunks of an interleaved
  /// schedule that are not alike are not simulated but timed by formula.
  double quickStep(const Choice &choice) const;
  /// step(choice).step.
  double exactStep(const Choice &choice) const;
  /// At most exactStep(), quick and near: quickStep() where that is exact.
  double leastStep(const Choice &choice) const;
  /// step(choice).optimizer, the same bits: the part that changes state.
  double quickOptimizer(const Choice &choice) const;

  /// Virtual stage `stage` of choice.layout.
  StageTime stage(const Choice &choice, int64_t stage) const;
  /// The same of a stage that has `count` layers after `first` others, `full`
  /// of them recomputed; what the layout says does not count.
  StageTime stage(const Choice &choice, int64_t stage, int64_t first,
                  int64_t count, int64_t full) const;
  /// One decoder layer (with experts or without), the embedding, the head.
  const UnitTimes &units(const Choice &choice) const;

  /// At most quickStep() of every choice with these sizes, whatever its
  /// schedule, chunks, layout, ZeRO stage, recomputation, sequence parallelism
  /// and context method.
  double lowerBound(const PartialChoice &choice) const;
  /// At most quickStep() of `choice` with any layout, ZeRO stage and
  /// recomputation; at least the bound of its sizes.
  double wayBound(const Choice &choice) const;

  /// For any layout and recomputation of `choice` no rank of which works longer
  /// than this on one micro-batch, since reductions hide behind that work, and
  /// one of which has `held` layers (of two kinds, of those with experts) or an
  /// even share of them.
  AssignmentCost assignmentCost(const Choice &choice, double mostForward,
                                double mostBackward, int64_t held = 0) const;
  PassShares passShares(const Choice &choice) const;
  /// At most quickStep() of `choice` with any layout; a recomputation that is
  /// not selective may be of any layers.
  double assignmentBound(const Choice &choice) const;

  const Efficiency &efficiency() const;
  const Job &job() const;
  /// What to tell a person about the constants: an unknown profile, a family
  /// that nobody measured on this chip.
  std::vector<std::string> warnings() const;

private:
  struct Priced;
  struct State;
  /// What is made of interleaved chunks that are not alike.
  enum class Chunks { ByFormula, Simulated, AtLeast };
  Priced price(const Choice &choice, Chunks chunks) const;

  std::unique_ptr<State> state_;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_TIMEMODEL_H
