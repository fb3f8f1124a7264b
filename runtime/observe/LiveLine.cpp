//===- LiveLine.cpp - a run as a person watches it ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/observe/LiveLine.h"

#include <cmath>

namespace reckon::observe {

void formatDuration(double seconds, char *text, size_t size) {
  auto whole = static_cast<long long>(std::llround(std::fmax(0, seconds)));
  if (whole < 60)
    std::snprintf(text, size, "%lld s", whole);
  else if (whole < 3600)
    std::snprintf(text, size, "%lld min %02lld s", whole / 60, whole % 60);
  else
    std::snprintf(text, size, "%lld h %02lld min", whole / 3600,
                  whole / 60 % 60);
}

void formatBytes(int64_t bytes, char *text, size_t size) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit)
    value /= 1024;
  std::snprintf(text, size, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

void LiveLine::show(const StepSummary &step) {
  // The first step also warms up caches, so the mean starts over after it.
  meanStep_ = step.step <= 2 ? step.stepSeconds
                             : 0.9 * meanStep_ + 0.1 * step.stepSeconds;
  constexpr int64_t kTerminalNs = 100'000'000;
  constexpr int64_t kPlainNs = 5'000'000'000;
  int64_t now = clock_.monotonicNs();
  bool edge = !shown_ || step.step == step.total;
  if (!edge && now - lastShown_ < (terminal_ ? kTerminalNs : kPlainNs))
    return;
  lastShown_ = now;
  shown_ = true;
  char left[32];
  char memory[32];
  formatDuration(meanStep_ * static_cast<double>(step.total - step.step), left,
                 sizeof(left));
  formatBytes(step.memoryBytes, memory, sizeof(memory));
  std::fprintf(out_,
               "%sstep %lld/%lld  loss %.4f  %.0f tokens/s  %s/rank  %s left%s",
               terminal_ ? "\r\x1b[K" : "", static_cast<long long>(step.step),
               static_cast<long long>(step.total), step.loss,
               step.tokensPerSecond, memory, left, terminal_ ? "" : "\n");
  std::fflush(out_);
}

void LiveLine::finish() {
  if (terminal_ && shown_)
    std::fprintf(out_, "\n");
  std::fflush(out_);
}

} // namespace reckon::observe
