//===- Evaluate.cpp - one choice against the limits -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Evaluate.h"

#include "passes/model/Schedule.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::search;

Evaluator::Evaluator(const Spec &spec)
    : model_(model::modelDims(spec), model::reserveBytes(spec)),
      cluster_(model::clusterSpeeds(spec)),
      globalBatch_(*spec.training.globalBatchSize),
      limit_(static_cast<uint64_t>(spec.constraints.memoryLimitBytes())),
      maxBubble_(*spec.constraints.maxBubble) {}

Verdict Evaluator::judge(const model::Choice &choice) {
  Verdict verdict;
  for (int64_t stage = 0; stage < choice.pp; ++stage) {
    uint64_t arena = model_.memory(choice, stage).arena();
    if (arena > verdict.peakArena) {
      verdict.peakArena = arena;
      verdict.peakStage = stage;
    }
  }
  verdict.memoryFits = verdict.peakArena <= limit_;
  verdict.bubble =
      model::scheduleBubble(choice.schedule, choice.pp, choice.numMicroBatches);
  verdict.bubbleFits = verdict.bubble <= maxBubble_ + 1e-12;
  return verdict;
}

model::StepTime Evaluator::time(const model::Choice &choice) const {
  return model::stepTime(model_.dims(), choice, cluster_, globalBatch_);
}

Candidate Evaluator::candidate(const model::Choice &choice) {
  Candidate candidate{.choice = choice, .time = time(choice)};
  candidate.bubbleFraction =
      model::scheduleBubble(choice.schedule, choice.pp, choice.numMicroBatches);
  for (int64_t stage = 0; stage < choice.pp; ++stage) {
    candidate.stages.push_back(model_.arena(choice, stage).memory);
    if (candidate.stages[stage].total() > candidate.peakBytes())
      candidate.peakStage = stage;
  }
  return candidate;
}
