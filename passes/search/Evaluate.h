//===- Evaluate.h - one choice against the limits -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_EVALUATE_H
#define RECKON_PASSES_SEARCH_EVALUATE_H

#include "passes/search/Search.h"

namespace reckon::search {

/// What the limits say of a choice.
struct Verdict {
  bool memoryFits = true;
  bool bubbleFits = true;
  uint64_t peakArena = 0;
  int64_t peakStage = 0;
  double bubble = 0;
  bool fits() const { return memoryFits && bubbleFits; }
};

/// Evaluates choices under one spec; remembers what choices have in common.
class Evaluator {
public:
  explicit Evaluator(const Spec &spec);

  Verdict judge(const model::Choice &choice);
  model::StepTime time(const model::Choice &choice) const;
  Candidate candidate(const model::Choice &choice);
  uint64_t limitBytes() const { return limit_; }

private:
  model::StageModel model_;
  model::ClusterSpeeds cluster_;
  int64_t globalBatch_;
  uint64_t limit_;
  double maxBubble_;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_EVALUATE_H
