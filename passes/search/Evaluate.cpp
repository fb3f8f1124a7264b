//===- Evaluate.cpp - memory and time of a choice -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Evaluate.h"

#include "passes/model/account/Representation.h"
#include "passes/model/schedule/Given.h"
#include "passes/search/Goodput.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::search;

Evaluator::Evaluator(const Spec &spec)
    : job_(model::makeJob(spec)), accountant_(job_), time_(job_),
      training_(goodput::makeInputs(spec, {})), bounds_(Bounds::of(spec)) {}

double Evaluator::step(const model::Choice &choice) {
  return time_.quickStep(choice);
}

double Evaluator::timed(const model::Choice &choice) {
  return time_.exactStep(choice);
}

double Evaluator::timedBound(const model::Choice &choice) {
  return time_.leastStep(choice);
}

uint64_t Evaluator::memory(const model::Choice &choice, int64_t rank) {
  return accountant_.memory(choice, rank).arena();
}

Peak Evaluator::peak(const model::Choice &choice) {
  model::PeakMemory peak = accountant_.peak(choice);
  return {peak.arena, peak.ppRank};
}

Peak Evaluator::peakUpTo(const model::Choice &choice, uint64_t limit) {
  model::PeakMemory peak = accountant_.peak(choice, limit);
  return {peak.arena, peak.ppRank};
}

double Evaluator::bubble(const model::Choice &choice) {
  if (choice.pp == 1)
    return 0;
  if (const model::GivenSchedule *given = model::givenOf(choice))
    return given->bubble;
  model::ScheduleShape shape = model::standInShape(choice);
  return bubbles_.get({static_cast<int64_t>(shape.kind), shape.p, shape.v,
                       shape.m, shape.group},
                      [&] { return model::scheduleBubble(shape); });
}

uint64_t Evaluator::hostBytes(const model::Choice &choice) {
  // A snapshot for a checkpoint: weights 2, main weights 4, moments 8 bytes a
  // parameter, each part staged by one of the ranks that hold it.
  constexpr double kBytesPerParameter = 14;
  int64_t writers =
      choice.zero > 0 ? choice.world()
                      : choice.tp * choice.pp * std::max<int64_t>(choice.ep, 1);
  double share = kBytesPerParameter *
                 static_cast<double>(job_.model.parameters()) /
                 static_cast<double>(std::min(writers, choice.world()));
  return static_cast<uint64_t>(share * static_cast<double>(job_.gpusPerNode));
}

std::string Evaluator::forbids(const model::Choice &choice) {
  return model::representationForbids(job_.representation, choice, job_.model);
}

double Evaluator::wallStep(const model::Choice &choice, double stepSeconds) {
  goodput::PlanFacts facts{.stepSeconds = stepSeconds};
  if (training_.async && !training_.stallGiven) {
    facts.readOnlySeconds =
        std::max(0.0, stepSeconds - time_.quickOptimizer(choice));
    // No stage holds more than everything; mostly even that copy is hidden.
    facts.heaviestStage = static_cast<double>(choice.pp);
    if (training_.withPlan(facts).copySeconds > facts.readOnlySeconds) {
      HeaviestStage heaviest;
      for (int64_t rank = 0; rank < choice.pp; ++rank)
        heaviest.add(accountant_.memory(choice, rank));
      facts.heaviestStage = heaviest.overMean();
    }
  }
  return training_.withPlan(facts).wallStep().value_or(HUGE_VAL);
}

double Evaluator::wallStepBound(double stepSeconds) {
  return training_.wallStepBound(stepSeconds).value_or(HUGE_VAL);
}

double Evaluator::stepBound(const model::Choice &outer) {
  return time_.lowerBound({.tp = outer.tp,
                           .cp = outer.cp,
                           .pp = outer.pp,
                           .dp = outer.dp,
                           .ep = outer.ep,
                           .etp = outer.etp,
                           .microBatch = outer.microBatch});
}

double Evaluator::wayBound(const model::Choice &way) {
  return time_.wayBound(way);
}

double Evaluator::assignmentBound(const model::Choice &choice) {
  return time_.assignmentBound(choice);
}

uint64_t Evaluator::memoryBound(const model::Choice &outer) {
  return accountant_.lowerBound(outer);
}

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
  Candidate candidate{.choice = choice, .time = time_.step(choice)};
  candidate.bubbleFraction = bubble(choice);
  for (int64_t stage = 0; stage < choice.pp; ++stage) {
    candidate.stages.push_back(accountant_.memory(choice, stage));
    if (candidate.stages[stage].total() > candidate.peakBytes())
      candidate.peakStage = stage;
  }
  if (model::cachesAllocations(accountant_.profile()))
    candidate.risk =
        model::memoryRisk(static_cast<double>(candidate.peakArena()) /
                          static_cast<double>(bounds_.memoryBytes));
  candidate.hostBytes = hostBytes(choice);
  candidate.notRunnable = model::whyNotCompilable(job_.model);
  if (candidate.notRunnable.empty())
    candidate.notRunnable = model::whyNotCompilable(choice);
  return candidate;
}
