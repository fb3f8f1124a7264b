//===- StepTimeline.h - when every action of a step runs ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The plan's own lists, streams and events are replayed with the times that the
// planner predicted and recorded in the manifest: a forward and a backward of a
// stage, a message, the update, what is left for the host. Replaying a pipeline
// and the planner's formula for it differ a little, so the replay is scaled to
// end when the prediction says. Inside a fragment the instructions divide its
// time as InstructionTime prices them.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_TIMELINE_STEPTIMELINE_H
#define RECKON_PASSES_TIMELINE_STEPTIMELINE_H

#include "passes/timeline/FragmentTimes.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Prediction.h"

#include <optional>
#include <span>
#include <vector>

namespace reckon::timeline {

/// An action whose time is predicted: forward, backward, message, update.
struct ActionTimes {
  size_t action = 0; ///< index in the list
  Span span;
  /// Of a run: one entry for each of its fragment's instructions.
  std::vector<Span> instructions;
};

/// Bytes of slots in use from one moment on.
struct MemorySample {
  double time = 0;
  int64_t bytes = 0;
};

struct StageTimes {
  const plan::StagePlanT *plan = nullptr;
  const plan::ActionListT *list = nullptr; ///< `step`
  std::vector<ActionTimes> actions;        ///< in list order
  std::vector<MemorySample> slots;         ///< by time
};

/// A message, by positions in StepTimeline::stages and StageTimes::actions.
struct MessageEnds {
  size_t sender = 0, send = 0;
  size_t receiver = 0, receive = 0;
};

/// Seconds from the first forward on.
struct StepTimeline {
  std::vector<StageTimes> stages; ///< one for each stage of the plan
  std::vector<MessageEnds> messages;
  double pipelineEnd = 0; ///< of the last backward
  double updateEnd = 0;   ///< of the last stage's update
  double stepEnd = 0;     ///< updateEnd and what the host adds
  /// The replayed pipeline times this ends as predicted.
  double pipelineScale = 1;
  /// The prices of the update's instructions times this end as predicted.
  double updateScale = 1;
};

/// `stages`: all of the plan, in order. They must outlive the result. BadSpec
/// when nothing is predicted, Corrupt when the lists never end.
Result<StepTimeline>
stepTimeline(std::span<const plan::StagePlanT *const> stages,
             const plan::Prediction &prediction, const InstructionTime &time);

} // namespace reckon::timeline

#endif // RECKON_PASSES_TIMELINE_STEPTIMELINE_H
