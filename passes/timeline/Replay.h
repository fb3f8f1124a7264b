//===- Replay.h - the lists of all stages with given durations ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_TIMELINE_REPLAY_H
#define RECKON_PASSES_TIMELINE_REPLAY_H

#include "passes/timeline/FragmentTimes.h"
#include "runtime/base/Status.h"

#include <utility>
#include <vector>

namespace reckon::timeline {

/// The list that every step runs, or null.
const plan::ActionListT *stepList(const plan::StagePlanT &plan);

/// Two ends of a message: stage and action.
using ActionAt = std::pair<size_t, size_t>;

/// The first step of `stages`: every action starts as soon as its stream has
/// ended what was issued before and the events that it waits for are recorded;
/// a message as soon as both ends are ready, and takes both as long.
struct Replay {
  std::vector<std::vector<Span>> actions; ///< by stage and position in the list
  std::vector<std::pair<ActionAt, ActionAt>> messages; ///< send, receive
};

/// `seconds` has one duration an action; that of a message is its send's.
/// Corrupt when the lists wait for each other.
Result<Replay> replay(std::span<const plan::StagePlanT *const> stages,
                      const std::vector<std::vector<double>> &seconds);

} // namespace reckon::timeline

#endif // RECKON_PASSES_TIMELINE_REPLAY_H
