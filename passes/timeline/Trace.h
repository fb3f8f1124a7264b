//===- Trace.h - a timeline for ui.perfetto.dev ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_TIMELINE_TRACE_H
#define RECKON_PASSES_TIMELINE_TRACE_H

#include "passes/timeline/StepTimeline.h"
#include "runtime/plan/Manifest.h"

#include <optional>
#include <string>

namespace reckon::timeline {

/// Which processes a trace has.
struct TraceOptions {
  std::optional<unsigned> onlyStage; ///< otherwise all stages
  /// Names the process of `onlyStage`. All ranks of a stage have its times.
  std::optional<int64_t> rank;
};

/// Chrome's trace JSON, one event a line: a process a stage, a thread a stream;
/// complete events (ph X, microseconds with three digits) for actions and,
/// inside runs, for instructions that take time; a flow (ph s, f) from each
/// send to its receive when both are shown; a counter (ph C) of the bytes of
/// slots in use. What nobody predicted, such as loads, is left out.
std::string traceJson(const plan::Manifest &manifest,
                      const StepTimeline &timeline,
                      const TraceOptions &options);

} // namespace reckon::timeline

#endif // RECKON_PASSES_TIMELINE_TRACE_H
