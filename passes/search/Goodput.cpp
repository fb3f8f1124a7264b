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

goodput::PlanFacts search::planFacts(const Candidate &candidate) {
  goodput::PlanFacts facts;
  facts.stepSeconds = candidate.time.step;
  facts.readOnlySeconds =
      std::max(0.0, candidate.time.step - candidate.time.optimizer);
  facts.mfu = candidate.time.mfu;
  double most = 0, sum = 0;
  for (const model::StageMemory &stage : candidate.stages) {
    most = std::max(most, static_cast<double>(stage.parameters));
    sum += static_cast<double>(stage.parameters);
  }
  if (sum > 0)
    facts.heaviestStage =
        most * static_cast<double>(candidate.stages.size()) / sum;
  return facts;
}

double search::timeToTrain(const Spec &spec, const Candidate &candidate) {
  return goodput::trainingCost(goodput::makeInputs(spec, planFacts(candidate)))
      .wallSeconds.value_or(HUGE_VAL);
}
