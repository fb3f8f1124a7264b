//===- ReportText.cpp - the self-test's report for people -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/selftest/SelfTest.h"

#include <algorithm>
#include <cstdarg>

namespace reckon::selftest {

namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char *text,
                                                         ...) {
  va_list arguments;
  va_start(arguments, text);
  char buffer[512];
  std::vsnprintf(buffer, sizeof buffer, text, arguments);
  va_end(arguments);
  return buffer;
}

const char *verdict(bool passed) { return passed ? "ok" : "WRONG"; }

double gib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

std::string faultLine(const std::string &where, const std::string &fault) {
  return fault.empty() ? "" : "    " + where + ": " + fault + "\n";
}

std::string speedLine(const char *name, const Speed &speed) {
  return format("    %-10s %10.4f s a step %12.0f tokens/s %8.1f TFLOP/s "
                "%6.2f %% MFU\n",
                name, speed.stepSeconds, speed.tokensPerSecond, speed.tflops,
                100 * speed.mfu);
}

/// One line for each kernel: its calls together, beside the roofline's time.
std::string callLines(const StackOutcome &outcome) {
  struct Line {
    device::Kernel kernel;
    int64_t calls = 0;
    double seconds = 0.0, roofline = 0.0;
  };
  std::vector<Line> lines;
  double all = 0.0;
  for (const CallTime &time : outcome.calls) {
    // Calls are sorted by kernel.
    if (lines.empty() || lines.back().kernel != time.call.kernel)
      lines.push_back({time.call.kernel});
    auto calls = static_cast<double>(time.call.perStep);
    lines.back().calls += time.call.perStep;
    lines.back().seconds += calls * time.seconds;
    lines.back().roofline += calls * time.roofline;
    all += calls * time.seconds;
  }
  std::stable_sort(
      lines.begin(), lines.end(),
      [](const Line &a, const Line &b) { return a.seconds > b.seconds; });
  std::string text = format("    kernels one by one: %.6f s a step, %.1f %% of "
                            "the measured\n",
                            all, 100 * all / outcome.measured.stepSeconds);
  for (const Line &line : lines) {
    text +=
        format("      %-22s %6lld calls %12.3f ms %5.1f %%",
               std::string(device::kernelSignature(line.kernel)->name).c_str(),
               static_cast<long long>(line.calls), 1e3 * line.seconds,
               100 * line.seconds / all);
    if (line.roofline > 0)
      text += format("  roofline %12.3f ms, reached %5.1f %%",
                     1e3 * line.roofline, 100 * line.roofline / line.seconds);
    text += "\n";
  }
  return text;
}

/// "kernels 215 of 215 passed".
template <typename Outcome>
std::string countLine(const char *what, const std::vector<Outcome> &outcomes,
                      double seconds) {
  if (outcomes.empty())
    return "";
  auto passed = std::count_if(outcomes.begin(), outcomes.end(),
                              [](const auto &each) { return each.passed(); });
  return format("  %-8s %5lld of %lld passed %29.1f s\n", what,
                static_cast<long long>(passed),
                static_cast<long long>(outcomes.size()), seconds);
}

} // namespace

std::string kernelLine(const std::vector<KernelOutcome> &outcomes) {
  double worst[2] = {-1.0, -1.0};
  bool passed = true;
  std::string faults;
  for (const KernelOutcome &outcome : outcomes) {
    double &place = worst[outcome.dtype == device::DType::BF16];
    place = std::max(place, outcome.error);
    passed &= outcome.passed();
    faults += faultLine(std::string(device::dtypeName(outcome.dtype)) + " " +
                            outcome.sizes,
                        outcome.fault);
  }
  std::string text = format(
      "  %-22s %4zu cases",
      std::string(device::kernelSignature(outcomes[0].kernel)->name).c_str(),
      outcomes.size());
  for (int i : {0, 1})
    text += worst[i] < 0 ? format("%14s", "")
                         : format("  %s %7.3f", i ? "bf16" : " f32", worst[i]);
  return text + "  " + verdict(passed) + "\n" + faults;
}

std::string planLine(const PlanOutcome &outcome) {
  return format("  %-24s %-5s recompute %-5s loss %9.6f  gradient %.1e  loss "
                "%.1e %6.1f s  %s\n",
                outcome.name.c_str(), outcome.precision.c_str(),
                outcome.recompute.c_str(),
                outcome.losses.empty() ? 0.0 : outcome.losses.back(),
                outcome.gradient, outcome.loss, outcome.seconds,
                verdict(outcome.passed())) +
         faultLine(outcome.name, outcome.fault);
}

std::string stackLines(const StackOutcome &outcome) {
  std::string text =
      format("  %s: %lld layers, %s, planned for %s, %.1f s to set up  %s\n",
             outcome.name.c_str(), static_cast<long long>(outcome.layers),
             outcome.precision.c_str(), outcome.accelerator.c_str(),
             outcome.setUpSeconds, verdict(outcome.passed())) +
      faultLine(outcome.name, outcome.fault) +
      format("    arena      %14lld bytes, planned %lld\n",
             static_cast<long long>(outcome.allocatedBytes),
             static_cast<long long>(outcome.plannedBytes));
  for (const MemoryItem &item : outcome.memory)
    text += format("    %-28s %9.3f GiB\n", item.name.c_str(), gib(item.bytes));
  if (!outcome.memory.empty() && outcome.reserveBytes >= 0)
    text += format("    %-28s %9.3f GiB, reserved %.3f GiB\n",
                   "all beside the arena", gib(outcome.besideArena()),
                   gib(outcome.reserveBytes));
  if (outcome.steps == 0)
    return text;
  text += speedLine("measured", outcome.measured);
  if (outcome.predicted)
    text += speedLine("predicted", *outcome.predicted);
  return outcome.calls.empty() ? text : text + callLines(outcome);
}

std::string reportTable(const Report &report) {
  std::string text =
      "\n" + countLine("kernels", report.kernels, report.kernelSeconds) +
      countLine("plans", report.plans, report.planSeconds) +
      countLine("stacks", report.stacks, report.stackSeconds);
  if (report.notRun > 0)
    text += format("  not run  %5lld: out of time\n",
                   static_cast<long long>(report.notRun));
  return text + (report.passed() ? "passed\n" : "FAILED\n");
}

} // namespace reckon::selftest
