//===- Analysis.cpp - where time and money go, and what would help --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Analysis.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::goodput;

namespace {

constexpr double kMonthHours = 30 * 24;

struct Lever {
  const char *name;
  double Terms::*term;
  double Targets::*target;
};

constexpr Lever kLevers[] = {
    {"delta", &Terms::delta, &Targets::delta},
    {"detect", &Terms::detect, &Targets::detect},
    {"restart", &Terms::restart, &Targets::restart},
    {"load", &Terms::load, &Targets::load},
};

void sort(std::vector<Gain> &gains) {
  std::stable_sort(
      gains.begin(), gains.end(),
      [](const Gain &a, const Gain &b) { return a.points > b.points; });
}

/// Failures a tenth rarer: better parts, or those that fail taken out.
template <typename Measure>
Gain rarerFailures(const Terms &terms, const Measure &measure) {
  double before = measure(terms);
  Terms better = terms;
  better.mtbf *= 1.1;
  Gain gain{"mtbf", terms.mtbf, better.mtbf};
  gain.points = 100 * (measure(better) - before);
  better.mtbf = terms.mtbf + 1;
  gain.perSecond = 100 * (measure(better) - before);
  return gain;
}

/// Tries each lever under a measure of goodput, the largest gain first.
template <typename Measure>
std::vector<Gain> rank(const Terms &terms, const Targets &targets,
                       const Measure &measure) {
  std::vector<Gain> gains;
  double before = measure(terms);
  for (const Lever &lever : kLevers) {
    double now = terms.*lever.term;
    if (now == 0)
      continue;
    Terms better = terms;
    double to = targets.*lever.target;
    better.*lever.term = to < now ? to : now / 2;
    Gain gain{lever.name, now, better.*lever.term};
    gain.points = 100 * (measure(better) - before);
    // One second less, or all of a shorter term.
    double second = std::min(1.0, now);
    Terms slightly = terms;
    slightly.*lever.term = now - second;
    gain.perSecond = 100 * (measure(slightly) - before) / second;
    gains.push_back(gain);
  }
  sort(gains);
  return gains;
}

double goodputOf(const Inputs &inputs) {
  std::optional<double> tau = inputs.interval();
  return tau ? goodput::goodput(inputs.terms, *tau) : 0;
}

double dollars30(const Inputs &inputs) {
  return inputs.pricePerGpuHour * static_cast<double>(inputs.gpus) *
         kMonthHours;
}

} // namespace

double goodput::goodputAt(const Terms &terms, IntervalRule rule) {
  std::optional<double> best = bestInterval(terms);
  if (!best)
    return 0;
  double tau = rule == IntervalRule::Young ? youngInterval(terms) : *best;
  // A free checkpoint is taken all the time: the limit of G for tau -> 0.
  if (tau == 0)
    return 1 - terms.recovery() / terms.mtbf;
  return std::max(0.0, goodput::goodput(terms, tau));
}

std::vector<Gain> goodput::termGains(const Terms &terms, const Targets &targets,
                                     IntervalRule rule) {
  return rank(terms, targets,
              [&](const Terms &t) { return goodputAt(t, rule); });
}

std::vector<Gain> goodput::gains(const Inputs &inputs, const Targets &targets) {
  auto measure = [&](const Terms &terms) {
    Inputs changed = inputs;
    changed.terms = terms;
    return goodputOf(changed);
  };
  std::vector<Gain> gains = rank(inputs.terms, targets, measure);
  gains.push_back(rarerFailures(inputs.terms, measure));
  sort(gains);
  for (Gain &gain : gains)
    gain.dollarsPer30Days = gain.points / 100 * dollars30(inputs);
  return gains;
}

std::vector<SizeRow> goodput::bySize(const Inputs &inputs) {
  std::vector<SizeRow> rows;
  for (double factor : {0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0}) {
    double gpus = static_cast<double>(inputs.gpus) * factor;
    if (gpus < 1 || gpus != static_cast<double>(static_cast<int64_t>(gpus)))
      continue;
    Inputs other = inputs.withGpus(gpus);
    rows.push_back({.gpus = other.gpus,
                    .mtbfHours = other.terms.mtbf / 3600,
                    .interval = other.interval(),
                    .goodput = goodputOf(other)});
  }
  return rows;
}

MfuPoint goodput::mfuPoint(double mfuPercent, double days, int64_t gpus,
                           double pricePerGpuHour) {
  MfuPoint point{.mfu = mfuPercent, .days = days};
  point.derivativeDays = days / mfuPercent;
  point.stepDays = days * (1 - mfuPercent / (mfuPercent + 1));
  point.dollarsPerDay = pricePerGpuHour * static_cast<double>(gpus) * 24;
  return point;
}

TrainingCost goodput::trainingCost(const Inputs &inputs) {
  TrainingCost cost;
  cost.productiveSeconds =
      static_cast<double>(inputs.trainSteps) * inputs.plan.stepSeconds;
  double goodput = goodputOf(inputs);
  if (goodput <= 0)
    return cost;
  cost.wallSeconds = cost.productiveSeconds / goodput;
  cost.dollars = *cost.wallSeconds / 3600 * inputs.pricePerGpuHour *
                 static_cast<double>(inputs.gpus);
  return cost;
}

Analysis goodput::analyse(const Inputs &inputs,
                          const AnalysisOptions &options) {
  Analysis result{.inputs = inputs, .interval = inputs.interval()};
  if (result.interval) {
    result.shares = shares(inputs.terms, *result.interval);
    result.renewal = renewalGoodput(inputs.terms, *result.interval);
    for (uint64_t seed : options.seeds)
      result.simulations.push_back(
          simulate(inputs.terms, *result.interval, options.failures, seed,
                   inputs.async ? inputs.writeSeconds : 0));
    result.lostPer30Days = (1 - result.shares.useful) * dollars30(inputs);
  }
  result.gains = gains(inputs, options.targets);
  result.sizes = bySize(inputs);
  result.dollarsPer30Days = dollars30(inputs);
  double mfu = options.mfuPercent ? options.mfuPercent : 100 * inputs.plan.mfu;
  if (mfu > 0)
    result.mfuPoint =
        mfuPoint(mfu, options.days, inputs.gpus, inputs.pricePerGpuHour);
  result.training = trainingCost(inputs);
  return result;
}
