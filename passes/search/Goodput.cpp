//===- Goodput.cpp - what goodput needs to know of a plan -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Goodput.h"

#include "passes/goodput/Analysis.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::search;

void HeaviestStage::add(const model::StageMemory &stage) {
  auto bytes = static_cast<double>(stage.parameters);
  most_ = std::max(most_, bytes);
  sum_ += bytes;
  ++count_;
}

double HeaviestStage::overMean() const {
  return sum_ > 0 ? most_ * count_ / sum_ : 1;
}

goodput::PlanFacts search::planFacts(const Candidate &candidate) {
  goodput::PlanFacts facts;
  facts.stepSeconds = candidate.time.step;
  facts.readOnlySeconds =
      std::max(0.0, candidate.time.step - candidate.time.optimizer);
  facts.mfu = candidate.time.mfu;
  HeaviestStage heaviest;
  for (const model::StageMemory &stage : candidate.stages)
    heaviest.add(stage);
  facts.heaviestStage = heaviest.overMean();
  return facts;
}

ObjectiveValue search::objectiveValue(const Spec &spec,
                                      const Candidate &candidate) {
  Objective objective = *spec.search.objective;
  const char *name = toString(objective);
  if (objective == Objective::StepTime)
    return {name, candidate.time.step, "s"};
  if (objective == Objective::Memory)
    return {name, static_cast<double>(candidate.peakArena()), "bytes"};
  goodput::TrainingCost cost =
      goodput::trainingCost(goodput::makeInputs(spec, planFacts(candidate)));
  if (objective == Objective::TimeToTrain)
    return {name, cost.wallSeconds.value_or(HUGE_VAL), "s"};
  return {name, cost.wallSeconds ? cost.dollars : HUGE_VAL, "dollars"};
}
