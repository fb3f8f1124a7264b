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
  /// step(choice).step, the same bits.
  double quickStep(const Choice &choice) const;
  /// step(choice).optimizer, the same bits: the part that changes state.
  double quickOptimizer(const Choice &choice) const;

  /// Virtual stage `stage` of choice.layout.
  StageTime stage(const Choice &choice, int64_t stage) const;
  /// One decoder layer (with experts or without), the embedding, the head.
  const UnitTimes &units(const Choice &choice) const;

  /// At most quickStep() of every choice with these sizes, whatever its
  /// schedule, chunks, layout, ZeRO stage, recomputation, sequence parallelism
  /// and context method.
  double lowerBound(const PartialChoice &choice) const;
  /// At most quickStep() of `choice` with any layout, ZeRO stage and
  /// recomputation; at least the bound of its sizes.
  double wayBound(const Choice &choice) const;

  const Efficiency &efficiency() const;
  const Job &job() const;
  /// What to tell a person about the constants: an unknown profile, a family
  /// that nobody measured on this chip.
  std::vector<std::string> warnings() const;

private:
  struct Priced;
  struct State;
  Priced price(const Choice &choice) const;

  std::unique_ptr<State> state_;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_TIMEMODEL_H
