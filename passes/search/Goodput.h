//===- Goodput.h - what goodput needs to know of a plan -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_GOODPUT_H
#define RECKON_PASSES_SEARCH_GOODPUT_H

#include "passes/goodput/Inputs.h"
#include "passes/search/Search.h"

namespace reckon::search {

/// Parameters of the heaviest stage over those of an average one.
class HeaviestStage {
public:
  void add(const model::StageMemory &stage);
  double overMean() const;

private:
  double most_ = 0, sum_ = 0, count_ = 0;
};

goodput::PlanFacts planFacts(const Candidate &candidate);

/// What the objective makes of a candidate, in the unit that people compare.
struct ObjectiveValue {
  const char *name = "";
  double value = 0;      ///< infinite: no forward progress
  const char *unit = ""; ///< `s`, `dollars`, `bytes`
};

/// step_time: seconds of a step. time_to_train: expected seconds of train_steps
/// with failures and checkpoints. cost: the dollars of these seconds. memory:
/// bytes of the fullest rank without the reserve.
ObjectiveValue objectiveValue(const Spec &spec, const Candidate &candidate);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_GOODPUT_H
