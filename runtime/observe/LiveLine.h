//===- LiveLine.h - a run as a person watches it --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_OBSERVE_LIVELINE_H
#define RECKON_RUNTIME_OBSERVE_LIVELINE_H

#include "runtime/base/Os.h"

#include <cstdint>
#include <cstdio>

namespace reckon::observe {

/// One step, as the live line shows it.
struct StepSummary {
  int64_t step = 0; ///< completed steps
  int64_t total = 0;
  double loss = 0; ///< nats per token
  double tokensPerSecond = 0;
  int64_t memoryBytes = 0; ///< arena of rank 0
  double stepSeconds = 0;
};

/// What a person sees while a run trains: on a terminal one line that is
/// overwritten, elsewhere the first and last step and a line every few
/// seconds.
class LiveLine {
public:
  LiveLine(std::FILE *out, bool terminal, Clock &clock)
      : out_(out), terminal_(terminal), clock_(clock) {}

  void show(const StepSummary &step);
  /// Ends an overwritten line, so that other output starts on its own.
  void finish();

private:
  std::FILE *out_;
  bool terminal_;
  Clock &clock_;
  int64_t lastShown_ = 0;
  bool shown_ = false;
  double meanStep_ = 0;
};

/// "3 min 20 s"; for estimates.
void formatDuration(double seconds, char *text, size_t size);
/// "12.4 MiB".
void formatBytes(int64_t bytes, char *text, size_t size);

} // namespace reckon::observe

#endif // RECKON_RUNTIME_OBSERVE_LIVELINE_H
