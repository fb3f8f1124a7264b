//===- Pipeline.h - messages that lengthen a step -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_PIPELINE_H
#define RECKON_PASSES_MODEL_TIME_PIPELINE_H

#include "passes/model/Choice.h"

namespace reckon::model {

/// Messages on the critical path of one step, each of which lengthens it: two
/// a micro-batch and hop of the ramps, and of the steady state the share
/// (1 - hidden) that does not run beside compute. An interleaved schedule
/// hides the steady state.
double exposedMessages(ScheduleKind kind, int64_t p, int64_t v, int64_t m,
                       double hidden);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_PIPELINE_H
