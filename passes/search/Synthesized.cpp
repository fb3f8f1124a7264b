//===- Synthesized.cpp - schedules made for what the search found ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Synthesized.h"

#include "passes/model/schedule/Given.h"
#include "passes/search/Evaluate.h"
#include "passes/search/Goodput.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;
using model::ScheduleKind;

/// Candidates that the solver is asked about.
static constexpr size_t kAsked = 3;

std::vector<int64_t> search::slotsWithin(const model::Choice &choice,
                                         Evaluator &evaluator) {
  int64_t least = std::min(choice.pp, choice.numMicroBatches);
  int64_t most = std::min(2 * choice.pp - 1, choice.numMicroBatches);
  // ZB-H1 holds `least` on every rank, ZB-H2 `most`.
  model::Choice fewer = choice, more = choice;
  fewer.schedule = ScheduleKind::ZbH1;
  more.schedule = ScheduleKind::ZbH2;
  fewer.given = more.given = nullptr;
  std::vector<int64_t> slots;
  for (int64_t rank = 0; rank < choice.pp; ++rank) {
    uint64_t low = evaluator.memory(fewer, rank);
    uint64_t high = evaluator.memory(more, rank);
    uint64_t limit = evaluator.limitBytes();
    int64_t count = most;
    if (high > limit && high > low)
      count = least + static_cast<int64_t>(
                          static_cast<double>(limit - std::min(limit, low)) /
                          static_cast<double>(high - low) *
                          static_cast<double>(most - least));
    slots.push_back(std::clamp(count, least, most));
  }
  return slots;
}

namespace {

struct Made {
  SynthesisQuery query;
  Synthesis synthesis;
};

/// Asks the solver, and takes its answer if it keeps all limits.
Made improve(Candidate &candidate, Evaluator &evaluator) {
  Made made;
  model::Choice choice = candidate.choice;
  made.query.p = choice.pp;
  made.query.m = choice.numMicroBatches;
  made.query.durations = candidate.time.stages;
  made.query.transfer = candidate.time.message;
  made.query.slots = slotsWithin(choice, evaluator);
  made.synthesis = synthesize(made.query, scheduleCacheFolder());
  choice.given = model::giveSchedule(made.synthesis.orders);
  // It is not slower than ZB-H1, which fits; an order that suits these stages
  // may have too large a bubble with equal ones.
  if (!evaluator.judge(choice).fits()) {
    choice.given = model::giveSchedule(model::makeOrders(
        {ScheduleKind::ZbH1, choice.pp, 1, choice.numMicroBatches}));
    made.synthesis.orders = choice.given->orders;
    made.synthesis.method = model::scheduleName(ScheduleKind::ZbH1);
  }
  candidate = evaluator.candidate(choice);
  return made;
}

} // namespace

PlannedSchedule search::synthesizeSchedules(const Spec &spec,
                                            SearchResult &result) {
  Evaluator evaluator(spec);
  std::vector<std::pair<Candidate, std::optional<Made>>> all;
  for (Candidate &candidate : result.candidates) {
    auto &entry = all.emplace_back(std::move(candidate), std::nullopt);
    const model::Choice &choice = entry.first.choice;
    if (all.size() <= kAsked && choice.pp > 1 &&
        choice.schedule == ScheduleKind::Synthesized)
      entry.second = improve(entry.first, evaluator);
  }
  auto value = [&](const Candidate &candidate) {
    return objectiveValue(spec, candidate).value;
  };
  bool byTime = *spec.search.objective != Objective::Memory;
  if (byTime)
    std::stable_sort(all.begin(), all.end(), [&](const auto &a, const auto &b) {
      return value(a.first) < value(b.first);
    });
  result.candidates.clear();
  for (auto &entry : all)
    result.candidates.push_back(std::move(entry.first));
  const Candidate &first = result.candidates.front();
  const model::Choice &best = first.choice;
  if (byTime && best.schedule == ScheduleKind::Synthesized) {
    // The combinations were compared with what needs no solver.
    result.proof.space += ", schedules taken for ZB-H1 before the solver";
    result.proof.bound = std::min(result.proof.bound, value(first));
    for (Proved &part : result.proof.parts)
      if (part.what == "outer")
        part.bound = std::min(part.bound, value(first));
  }
  double maxBubble = *spec.constraints.maxBubble;
  if (std::optional<Made> &made = all.front().second)
    return planSynthesized(best, std::move(made->query),
                           std::move(made->synthesis), maxBubble);
  return planSchedule(best, {}, maxBubble);
}
