//===- Evaluate.cpp - memory and time of a choice -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Evaluate.h"

#include "passes/model/Schedule.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

Evaluator::Evaluator(const Spec &spec)
    : job_(model::makeJob(spec)),
      model_(model::modelDims(spec), model::reserveBytes(spec)),
      cluster_(model::clusterSpeeds(spec)), bounds_(Bounds::of(spec)) {}

double Evaluator::step(const model::Choice &choice) {
  return model::stepTime(model_.dims(), choice, cluster_, job_.globalBatch)
      .step;
}

uint64_t Evaluator::memory(const model::Choice &choice, int64_t rank) {
  return model_.memory(choice, rank).arena();
}

Peak Evaluator::peak(const model::Choice &choice) {
  Peak peak;
  for (int64_t rank = 0; rank < choice.pp; ++rank)
    if (uint64_t bytes = memory(choice, rank); bytes > peak.bytes)
      peak = {bytes, rank};
  return peak;
}

double Evaluator::bubble(const model::Choice &choice) {
  return model::scheduleBubble(choice.schedule, choice.pp,
                               choice.numMicroBatches);
}

uint64_t Evaluator::hostBytes(const model::Choice &) { return 0; }

std::string Evaluator::forbids(const model::Choice &choice) {
  return model::whyNotCompilable(choice);
}

double Evaluator::stepBound(const model::Choice &) { return 0; }
double Evaluator::assignmentBound(const model::Choice &) { return 0; }
uint64_t Evaluator::memoryBound(const model::Choice &) { return 0; }

Verdict Evaluator::judge(const model::Choice &choice) {
  Peak peak = this->peak(choice);
  Verdict verdict{.peakArena = peak.bytes,
                  .peakStage = peak.rank,
                  .bubble = bubble(choice),
                  .hostBytes = hostBytes(choice)};
  verdict.memoryFits = peak.bytes <= bounds_.memoryBytes;
  verdict.bubbleFits = verdict.bubble <= bounds_.maxBubble;
  verdict.hostFits =
      !bounds_.hostBytes || verdict.hostBytes <= *bounds_.hostBytes;
  return verdict;
}

Candidate Evaluator::candidate(const model::Choice &choice) {
  Candidate candidate{.choice = choice,
                      .time = model::stepTime(model_.dims(), choice, cluster_,
                                              job_.globalBatch)};
  candidate.bubbleFraction = bubble(choice);
  for (int64_t stage = 0; stage < choice.pp; ++stage) {
    candidate.stages.push_back(model_.arena(choice, stage).memory);
    if (candidate.stages[stage].total() > candidate.peakBytes())
      candidate.peakStage = stage;
  }
  candidate.notRunnable = model::whyNotCompilable(job_.model);
  if (candidate.notRunnable.empty())
    candidate.notRunnable = model::whyNotCompilable(choice);
  return candidate;
}
