//===- Evaluate.h - memory and time of a choice ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_EVALUATE_H
#define RECKON_PASSES_SEARCH_EVALUATE_H

#include "passes/goodput/Inputs.h"
#include "passes/model/KeyCache.h"
#include "passes/model/account/Accountant.h"
#include "passes/model/time/TimeModel.h"
#include "passes/search/Cost.h"
#include "passes/search/Outer.h"
#include "passes/search/Search.h"

namespace reckon::search {

/// What the limits say of a choice.
struct Verdict {
  bool memoryFits = true;
  bool bubbleFits = true;
  bool hostFits = true;
  uint64_t peakArena = 0;
  int64_t peakStage = 0;
  double bubble = 0;
  uint64_t hostBytes = 0;
  bool fits() const { return memoryFits && bubbleFits && hostFits; }
};

/// Evaluates choices under one spec; remembers what choices have in common.
/// Not thread-safe.
class Evaluator final : public CostModel {
public:
  explicit Evaluator(const Spec &spec);

  double step(const model::Choice &choice) override;
  double timed(const model::Choice &choice) override;
  double timedBound(const model::Choice &choice) override;
  uint64_t memory(const model::Choice &choice, int64_t rank) override;
  Peak peak(const model::Choice &choice) override;
  Peak peakUpTo(const model::Choice &choice, uint64_t limit) override;
  double bubble(const model::Choice &choice) override;
  uint64_t hostBytes(const model::Choice &choice) override;
  std::string forbids(const model::Choice &choice) override;
  double wallStep(const model::Choice &choice, double stepSeconds) override;
  double wallStepBound(double stepSeconds) override;
  double stepBound(const model::Choice &outer) override;
  double wayBound(const model::Choice &way) override;
  double assignmentBound(const model::Choice &choice) override;
  uint64_t memoryBound(const model::Choice &outer) override;

  Verdict judge(const model::Choice &choice);
  /// Everything that reports show.
  Candidate candidate(const model::Choice &choice);

  const Bounds &bounds() const { return bounds_; }
  uint64_t limitBytes() const { return bounds_.memoryBytes; }
  const model::Job &job() const { return job_; }
  model::Accountant &accountant() { return accountant_; }
  const model::TimeModel &timeModel() const { return time_; }

private:
  model::Job job_;
  model::Accountant accountant_;
  model::TimeModel time_;
  goodput::Inputs training_; ///< without a plan
  Bounds bounds_;
  model::KeyCache<5, double> bubbles_; ///< by the fields of the shape
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_EVALUATE_H
