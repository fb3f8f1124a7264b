//===- Timeline.cpp - a rank's memory over one step -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Account.h"

#include <algorithm>
#include <string_view>

using namespace reckon;
using namespace reckon::model;

namespace {

/// Follows one rank's timetable.
class Follower {
public:
  Follower(const ChoiceFrame &frame, const std::vector<MemoryItem> &items,
           int64_t rank, MemoryTimeline &out)
      : frame_(frame), out_(out) {
    for (const MemoryItem &item : items)
      sort(item);
    for (int64_t i = 0; i < frame.shape.v; ++i)
      chunks_.push_back(frame.chunks[frame.stageOf(rank, i)]);
  }

  void step(const std::vector<TimedAction> &actions,
            const TimelineDurations &durations, double makespan) {
    note(0, "start", 0);
    size_t firstBackward = 0, lastForward = 0;
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].action.pass == 'F')
        lastForward = i;
      else if (firstBackward == 0)
        firstBackward = i;
    }
    for (size_t i = 0; i < actions.size(); ++i) {
      const TimedAction &timed = actions[i];
      const char *phase = i < firstBackward ? "warm-up"
                          : i > lastForward ? "cool-down"
                                            : "steady";
      begin(timed.action);
      note(timed.start, phase, passBytes(timed.action));
      end(timed.action);
      // An action that follows at once begins with its own point.
      if (i + 1 == actions.size() || actions[i + 1].start > timed.end)
        note(timed.end, phase, 0);
    }
    held_ = 0;
    note(makespan, "gradients", 0);
    note(makespan + durations.gradients, "optimizer", optimizerBytes());
    note(makespan + durations.gradients + durations.optimizer, "end", 0);
  }

private:
  /// States last, buffers last, and some lines last as long as a pass.
  void sort(const MemoryItem &item) {
    std::string_view name = item.name;
    switch (item.category) {
    case MemoryCategory::Parameters:
    case MemoryCategory::Gradients:
    case MemoryCategory::Optimizer:
    case MemoryCategory::Reserve:
      states_ += item.bytes;
      return;
    case MemoryCategory::Logits:
      headPass_ += item.bytes;
      return;
    case MemoryCategory::Activations:
      if (name == "final norm")
        headPass_ += item.bytes;
      else if (name == "layer being recomputed")
        backwardPass_ += item.bytes;
      else if (name != "saved by layers")
        buffers_ += item.bytes;
      return;
    default:
      if (name == "gradients in a layer" || name == "values in a fragment")
        backwardPass_ += item.bytes;
      else
        buffers_ += item.bytes;
    }
  }

  uint64_t passBytes(const ComputeAction &action) const {
    uint64_t bytes = action.pass == 'F' ? 0 : backwardPass_;
    // Head and loss run with the last stage's backward.
    if (chunks_[action.chunk].last && action.pass != 'F' && action.pass != 'W')
      bytes += headPass_;
    return bytes;
  }

  void begin(const ComputeAction &action) {
    SplitStash stash = splitStash(frame_, chunks_[action.chunk]);
    if (action.pass == 'F')
      held_ += stash.toInput + stash.toWeight;
    else if (action.pass == 'I')
      held_ += stash.gradient;
  }

  void end(const ComputeAction &action) {
    SplitStash stash = splitStash(frame_, chunks_[action.chunk]);
    if (action.pass == 'B')
      held_ -= stash.toInput + stash.toWeight;
    else if (action.pass == 'I')
      held_ -= stash.toInput;
    else if (action.pass == 'W')
      held_ -= stash.toWeight + stash.gradient;
  }

  /// Gradients that are kept in bf16 become fp32 for the update.
  uint64_t optimizerBytes() const {
    bool half =
        frame_.profile.gradient == 2 && frame_.profile.gradientShard == 0 &&
        frame_.choice.precision != Precision::Fp32 && frame_.choice.zero < 3 &&
        frame_.job.representation != Representation::Reckon;
    if (!half)
      return 0;
    int64_t shards = frame_.choice.zero ? frame_.states.denseShards() : 1;
    return 4 * frame_.states.rank(frame_.parts(out_.ppRank)).elements / shards;
  }

  void note(double time, const char *phase, uint64_t pass) {
    bool working =
        std::string_view(phase) != "start" && std::string_view(phase) != "end";
    out_.points.push_back(
        {time, phase, states_, held_, working ? buffers_ + pass : 0});
  }

  const ChoiceFrame &frame_;
  MemoryTimeline &out_;
  std::vector<ChunkLayers> chunks_;
  uint64_t states_ = 0, buffers_ = 0, backwardPass_ = 0, headPass_ = 0;
  uint64_t held_ = 0;
};

} // namespace

uint64_t MemoryTimeline::peak() const {
  uint64_t most = 0;
  for (const MemoryPoint &point : points)
    most = std::max(most, point.total());
  return most;
}

MemoryTimeline model::timelineOf(const ChoiceFrame &frame, int64_t rank,
                                 const TimelineDurations &durations) {
  ItemSink sink;
  accountRank(frame, rank, sink);
  ScheduleShape shape = frame.shape;
  if (!frame.defined) // made elsewhere: drawn as the plain order
    shape.kind =
        shape.v > 1 ? ScheduleKind::Interleaved : ScheduleKind::OneFOneB;
  if (!frame.defined && !whyNotSchedule(shape).empty())
    shape.kind = ScheduleKind::GPipe;
  // Whole groups of micro-batches, enough for warm-up, some of the steady
  // state and cool-down.
  int64_t group = defaultGroup(shape.p, shape.m);
  int64_t enough = (6 * shape.p / group + 3) * group + shape.m % group;
  bool all =
      shape.kind == ScheduleKind::GPipe || shape.kind == ScheduleKind::Bfs;
  if (!all && !frame.given)
    shape.m = std::min(shape.m, enough);
  std::vector<StageDurations> stages = durations.stages;
  if (stages.empty())
    stages.assign(shape.stages(), StageDurations{});
  Timetable table;
  if (frame.given) {
    Result<Timetable> made =
        simulateOrders(frame.given->orders, stages, durations.transfer);
    RECKON_CHECK(made.ok());
    table = std::move(*made);
  } else {
    table = simulateSchedule(shape, stages, durations.transfer);
  }
  MemoryTimeline timeline{.ppRank = rank, .microBatches = shape.m};
  Follower(frame, sink.items, rank, timeline)
      .step(table.ranks[rank], durations, table.makespan);
  return timeline;
}
