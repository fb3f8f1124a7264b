//===- PlanHtml.cpp - reckon plan --format html ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/PlanHtml.h"

#include "passes/model/account/Accountant.h"
#include "passes/report/MemoryCurves.h"
#include "passes/report/Report.h"

#include <set>

using namespace reckon;

/// Ranks whose curves tell the rest: the ends, the fullest and the middle.
static std::set<int64_t> shownRanks(int64_t ranks, int64_t fullest) {
  std::set<int64_t> shown{0, fullest, ranks - 1};
  if (ranks > 3)
    shown.insert(ranks / 2);
  return shown;
}

static std::string memoryOverTime(const Spec &spec,
                                  const search::Candidate &best) {
  // Slots come and go with every micro-batch; a picture of more than these
  // would be a solid block, and the steady state repeats itself.
  constexpr int64_t mostMicroBatches = 64;
  model::Choice choice = best.choice;
  int64_t rounds = std::max<int64_t>(mostMicroBatches, 3 * choice.pp);
  bool cut = choice.numMicroBatches > rounds && !choice.given;
  if (cut)
    choice.numMicroBatches = rounds - rounds % choice.pp;
  model::Accountant accountant(model::makeJob(spec));
  std::vector<report::MemoryCurve> curves;
  double end = 0;
  for (int64_t rank : shownRanks(choice.pp, best.peakStage)) {
    report::MemoryCurve curve;
    curve.name = "stage " + std::to_string(rank);
    curve.ceiling = best.stages[rank].total();
    for (const model::MemoryPoint &point :
         accountant.timeline(choice, rank).points) {
      curve.samples.push_back(
          {point.time, {point.states, point.activations, point.temporary}});
      end = std::max(end, point.time);
    }
    curves.push_back(std::move(curve));
  }
  return report::memoryCurves(
      curves,
      {{"states and reserve", "#4e79a7"},
       {"activations", "#e15759"},
       {"temporary", "#9c9c9c"}},
      end,
      std::string("dashed: the total; time in forwards of one chunk, a "
                  "backward takes two") +
          (cut ? "; the first " + std::to_string(choice.numMicroBatches) +
                     " of " + std::to_string(best.choice.numMicroBatches) +
                     " micro-batches, the others repeat the middle"
               : ""));
}

/// The simulated step, with the predicted durations of every virtual stage.
static std::string schedule(const search::SearchResult &result) {
  const search::Candidate &best = result.candidates.front();
  model::ScheduleShape shape = model::shapeOf(best.choice);
  const auto &durations = best.time.stages;
  if (durations.size() != static_cast<size_t>(shape.stages()))
    return "";
  if (result.schedule && result.schedule->orders) {
    const model::PipelineOrders &orders = *result.schedule->orders;
    auto table = model::simulateOrders(orders, durations);
    return table ? model::scheduleSvg(orders, *table) : "";
  }
  return model::whyNotSchedule(shape).empty()
             ? model::scheduleSvg(shape, durations)
             : "";
}

std::string reckon::planHtml(const search::ReportInput &input) {
  std::vector<std::string> warnings;
  for (const Diagnostic &warning : input.spec.warnings)
    warnings.push_back(warning.str());
  report::Pictures pictures;
  if (!input.result.candidates.empty()) {
    const search::Candidate &best = input.result.candidates.front();
    pictures.schedule = schedule(input.result);
    pictures.memoryOverTime = memoryOverTime(input.spec, best);
  }
  return report::reportHtml(
      nlohmann::ordered_json::parse(search::reportJson(input)), pictures,
      input.spec.canonical, warnings);
}
