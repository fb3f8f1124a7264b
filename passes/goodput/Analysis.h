//===- Analysis.h - where time and money go, and what would help ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_GOODPUT_ANALYSIS_H
#define RECKON_PASSES_GOODPUT_ANALYSIS_H

#include "passes/goodput/Inputs.h"
#include "passes/goodput/Simulate.h"

#include <string>
#include <vector>

namespace reckon::goodput {

/// One term brought to `to`, all others as they are, at the interval that is
/// best afterwards.
struct Gain {
  std::string term;        ///< delta, detect, restart, load, mtbf
  double from = 0, to = 0; ///< seconds
  double points = 0;       ///< of goodput, in percent
  double perSecond = 0;    ///< points for the first second less (or more M)
  double dollarsPer30Days = 0;
};

/// Terms to compare with; what is already lower is halved instead.
struct Targets {
  double delta = 0.5, detect = 15, restart = 10, load = 20;
};

enum class IntervalRule { Young, Best };

/// Goodput of `terms` at the interval of a rule; 0 without progress.
double goodputAt(const Terms &terms, IntervalRule rule);

/// Changes of each term to `targets`, the largest gain first.
std::vector<Gain> termGains(const Terms &terms, const Targets &targets,
                            IntervalRule rule);

/// The same for a job: at intervals that it can keep, and in money; with
/// failures a tenth rarer (`mtbf`) among them.
std::vector<Gain> gains(const Inputs &inputs, const Targets &targets);

struct SizeRow {
  int64_t gpus = 0;
  double mtbfHours = 0;
  std::optional<double> interval; ///< nothing: no forward progress
  double goodput = 0;
};

/// Goodput of the job on other numbers of devices, from 1/8 to 8 times.
std::vector<SizeRow> bySize(const Inputs &inputs);

/// What a point of MFU is worth to a job of `days` days.
struct MfuPoint {
  double mfu = 0, days = 0;  ///< of the job: percent, days
  double derivativeDays = 0; ///< days / mfu: the slope at mfu
  double stepDays = 0;       ///< from mfu to mfu + 1
  double dollarsPerDay = 0;  ///< of the whole cluster
  double derivativeDollars() const { return derivativeDays * dollarsPerDay; }
  double stepDollars() const { return stepDays * dollarsPerDay; }
};

MfuPoint mfuPoint(double mfuPercent, double days, int64_t gpus,
                  double pricePerGpuHour);

/// Expected length and price of the whole training.
struct TrainingCost {
  double productiveSeconds = 0;      ///< train_steps * step
  std::optional<double> wallSeconds; ///< nothing: it never ends
  double dollars = 0;                ///< of wallSeconds
};

TrainingCost trainingCost(const Inputs &inputs);

struct Analysis {
  Inputs inputs;
  std::optional<double> interval;
  Shares shares;                       ///< by the formula
  double renewal = 0;                  ///< exact for exponential failures
  std::vector<Simulation> simulations; ///< one a seed
  std::vector<Gain> gains;
  std::vector<SizeRow> sizes;
  std::optional<MfuPoint> mfuPoint; ///< when the MFU is known
  double dollarsPer30Days = 0;
  double lostPer30Days = 0; ///< of these, what failures and saves take
  TrainingCost training;
};

struct AnalysisOptions {
  int64_t failures = 20000;
  std::vector<uint64_t> seeds = {1, 2, 3};
  double mfuPercent = 0; ///< 0: the plan's
  double days = 30;
  Targets targets;
};

Analysis analyse(const Inputs &inputs, const AnalysisOptions &options);

/// `reckon.goodput/1`; ends with a newline.
std::string analysisJson(const Analysis &analysis);
std::string analysisText(const Analysis &analysis);
/// Goodput over the number of devices, as a picture for a terminal.
std::string chartText(const Inputs &inputs);

} // namespace reckon::goodput

#endif // RECKON_PASSES_GOODPUT_ANALYSIS_H
