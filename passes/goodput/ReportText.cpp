//===- ReportText.cpp - reckon goodput for people -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Analysis.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

using namespace reckon;
using namespace reckon::goodput;

namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(std::vsnprintf(nullptr, 0, pattern, arguments), '\0');
  std::vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(arguments);
  va_end(again);
  return text;
}

/// Seconds, minutes, hours or days, whichever suits.
std::string duration(double s) {
  if (s < 120)
    return format("%.3g s", s);
  if (s < 2 * 3600)
    return format("%.1f min", s / 60);
  if (s < 72 * 3600)
    return format("%.2f h", s / 3600);
  return format("%.1f days", s / 86400);
}

std::string money(double dollars) {
  std::string digits = format("%.0f", dollars), text;
  size_t sign = digits[0] == '-';
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > sign && (digits.size() - i) % 3 == 0)
      text += ',';
    text += digits[i];
  }
  return "$" + text;
}

/// What a term is, with the symbol of the formula.
const char *nameOf(const std::string &term) {
  if (term == "delta")
    return "delta, save";
  if (term == "detect")
    return "T_d, detect";
  if (term == "restart")
    return "T_r, restart";
  if (term == "mtbf")
    return "M, a tenth up";
  return "T_l, load";
}

std::string deltaText(const Inputs &in) {
  std::string text = format("  delta = %.3g s", in.terms.delta);
  double rest =
      in.terms.delta -
      (in.async ? std::max(0.0, in.copySeconds - in.plan.readOnlySeconds)
                : in.writeSeconds);
  if (in.stallGiven)
    return text + ", given by cluster.resilience.checkpoint_stall_s\n";
  if (in.async)
    return text + format(": %.3g s + max(0, %.3g s copy to the host - %.3g s "
                         "forward and backward)\n",
                         rest, in.copySeconds, in.plan.readOnlySeconds);
  return text + format(": %.3g s + %.3g s to write %.4g TB at %.4g GB/s\n",
                       rest, in.writeSeconds, in.checkpointBytes / 1e12,
                       in.storageBandwidth / 1e9);
}

std::string formulaText(const Analysis &a) {
  const Inputs &in = a.inputs;
  const Terms &t = in.terms;
  std::string text;
  text += format("  checkpoint: %.4g TB (%.0f B a parameter), %.4g GB on a "
                 "device of the heaviest stage; %s\n",
                 in.checkpointBytes / 1e12, in.bytesPerParameter,
                 in.bytesPerGpu / 1e9,
                 in.async ? format("written in the background in %s",
                                   duration(in.writeSeconds).c_str())
                                .c_str()
                          : "training waits for the write");
  text +=
      format("  M     = M_gpu / N = %.6g h / %lld = %.4g h between "
             "interruptions\n",
             in.gpuMtbfHours, static_cast<long long>(in.gpus), t.mtbf / 3600);
  text += deltaText(in);
  text += format("  T     = T_d + T_r + T_l = %.5g + %.5g + %.4g = %.5g s "
                 "from a failure to the next step\n",
                 t.detect, t.restart, t.load, t.recovery());
  text += format("  w_min = sqrt(2 delta / M) = %.2f %% at tau = sqrt(2 delta "
                 "M) = %s\n",
                 100 * leastWaste(t), duration(youngInterval(t)).c_str());
  std::optional<double> best = bestInterval(t);
  if (!a.interval) {
    text += "  no forward progress: ";
    if (!best)
      text += format("M = %s is not above T = %s, so the next failure comes "
                     "before the restart is over",
                     duration(t.mtbf).c_str(), duration(t.recovery()).c_str());
    else if (leastWaste(t) > 1)
      text += format("saving and repeating work take %.0f %% of the time at "
                     "best",
                     100 * leastWaste(t));
    else
      text += format("at intervals of at least %s more work is lost than done",
                     duration(in.leastInterval()).c_str());
    return text + "; shorten the stall or the recovery, or use fewer devices\n";
  }
  text += format("  tau*  = sqrt(delta^2 + 2 delta (M - T)) - delta = %s\n",
                 duration(*best).c_str());
  double tau = *a.interval;
  if (tau > *best)
    text += format("  tau   = %s, the shortest that can be kept: %s\n",
                   duration(tau).c_str(),
                   tau > in.plan.stepSeconds ? "1.1 times the background write"
                                             : "one step");
  if (in.plan.stepSeconds > 0)
    text += format("          that is every %.0f steps of %.4g s\n",
                   std::max(1.0, std::round(tau / in.plan.stepSeconds)),
                   in.plan.stepSeconds);
  text += format("  G     = (1 - (T + tau/2)/M) / (1 + delta/tau)\n"
                 "        = (1 - (%.4g + %.4g)/%.5g) / (1 + %.4g/%.4g) = "
                 "%.2f %%\n",
                 t.recovery(), tau / 2, t.mtbf, t.delta, tau,
                 100 * a.shares.useful);
  return text;
}

std::string sharesText(const Analysis &a) {
  const Shares &s = a.shares;
  std::string text = "\nShares of wall time (%)\n"
                     "                    useful  redone    save  detect "
                     "restart    load     sum\n";
  auto row = [&](const std::string &label, const Shares &x) {
    text +=
        format("  %-16s %8.2f%8.2f%8.2f%8.2f%8.2f%8.2f%8.2f\n", label.c_str(),
               100 * x.useful, 100 * x.rollback, 100 * x.save, 100 * x.detect,
               100 * x.restart, 100 * x.load, 100 * x.sum());
  };
  row("formula", s);
  for (size_t i = 0; i < a.simulations.size(); ++i)
    row(format("simulation %zu", i + 1), a.simulations[i].shares);
  text += format("  Exact for exponential failures and instant writes: "
                 "%.2f %% useful.\n",
                 100 * a.renewal);
  if (!a.simulations.empty())
    text += format("  Each simulation runs through %lld failures, which also "
                   "strike saves and restarts.\n",
                   static_cast<long long>(a.simulations[0].failures));
  return text;
}

std::string gainsText(const Analysis &a) {
  std::string text = "\nWhat one change alone would gain, the most first\n"
                     "  term               from        to   points      "
                     "one second   per 30 days\n";
  for (const Gain &g : a.gains)
    text += format("  %-14s %10s %9s %+8.3f %+16.6f %13s\n", nameOf(g.term),
                   duration(g.from).c_str(), duration(g.to).c_str(), g.points,
                   g.perSecond, money(g.dollarsPer30Days).c_str());
  return text;
}

std::string sizesText(const Analysis &a) {
  std::string text = "\nOn other numbers of devices (same delta, T and step)\n"
                     "   devices     M (h)         tau   goodput\n";
  for (const SizeRow &row : a.sizes)
    text += format("  %8lld %9.4g %11s %8s\n", static_cast<long long>(row.gpus),
                   row.mtbfHours,
                   row.interval ? duration(*row.interval).c_str() : "-",
                   row.interval ? format("%.2f %%", 100 * row.goodput).c_str()
                                : "no forward progress");
  return text + "\n" + chartText(a.inputs);
}

std::string moneyText(const Analysis &a) {
  const Inputs &in = a.inputs;
  std::string text = "\nMoney\n";
  text +=
      format("  %lld devices x $%.4g/h: %s in 30 days, of which failures "
             "and saves take %s\n",
             static_cast<long long>(in.gpus), in.pricePerGpuHour,
             money(a.dollarsPer30Days).c_str(),
             money(a.interval ? a.lostPer30Days : a.dollarsPer30Days).c_str());
  if (a.mfuPoint) {
    const MfuPoint &p = *a.mfuPoint;
    text += format("  A point of MFU at %.4g %% over %.4g days: %.3f days, %s "
                   "as the slope (days / MFU);\n"
                   "  %.3f days, %s for the step from %.4g to %.4g %%\n",
                   p.mfu, p.days, p.derivativeDays,
                   money(p.derivativeDollars()).c_str(), p.stepDays,
                   money(p.stepDollars()).c_str(), p.mfu, p.mfu + 1);
  }
  if (in.plan.stepSeconds > 0 && a.training.wallSeconds)
    text += format("  %lld steps of %.4g s: %s of training, %s expected with "
                   "failures and checkpoints, %s\n",
                   static_cast<long long>(in.trainSteps), in.plan.stepSeconds,
                   duration(a.training.productiveSeconds).c_str(),
                   duration(*a.training.wallSeconds).c_str(),
                   money(a.training.dollars).c_str());
  return text;
}

} // namespace

std::string goodput::analysisText(const Analysis &a) {
  std::string text = formulaText(a);
  if (a.interval)
    text += sharesText(a);
  text += gainsText(a);
  text += sizesText(a);
  return text + moneyText(a);
}
