//===- Ticks.cpp - durations as integers ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Ticks.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::search;
using model::StageDurations;

int64_t Ticks::floor(double time) const {
  // A billionth of a tick is what the arithmetic of doubles may have lost.
  return static_cast<int64_t>(std::floor(time / length * (1 + 1e-12) + 1e-9));
}

int64_t Ticks::longest() const {
  double longest = 0;
  for (const StageDurations &stage : durations)
    longest = std::max({longest, stage.forward, stage.backward});
  return static_cast<int64_t>(longest);
}

Ticks search::inTicks(std::span<const StageDurations> durations,
                      double transfer, int64_t resolution) {
  std::vector<double> all;
  for (const StageDurations &stage : durations)
    for (double time : {stage.forward, stage.inputGrad(), stage.weightGrad()})
      if (time > 0)
        all.push_back(time);
  if (transfer > 0)
    all.push_back(transfer);
  Ticks ticks;
  double shortest = all.empty() ? 1 : *std::min_element(all.begin(), all.end());
  double longest = all.empty() ? 1 : *std::max_element(all.begin(), all.end());
  for (int64_t parts = 1; parts <= 64 && !ticks.exact; ++parts) {
    ticks.length = shortest / static_cast<double>(parts);
    ticks.exact = std::all_of(all.begin(), all.end(), [&](double time) {
      double count = time / ticks.length;
      return std::abs(count - std::round(count)) < 1e-9 * count;
    });
  }
  if (!ticks.exact)
    ticks.length = longest / static_cast<double>(resolution);
  auto whole = [&](double time) {
    double count = time / ticks.length;
    return ticks.exact ? std::round(count) : std::ceil(count);
  };
  for (const StageDurations &stage : durations) {
    double weight = whole(stage.weightGrad());
    ticks.durations.push_back(
        {whole(stage.forward), whole(stage.inputGrad()) + weight, weight});
  }
  ticks.transfer = static_cast<int64_t>(whole(transfer));
  return ticks;
}
