//===- ActionList.cpp - what a stage does in one step, in issue order -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/ActionList.h"

#include <algorithm>
#include <deque>

using namespace reckon;
using namespace reckon::model;

const char *model::slotClassName(SlotClassId id) {
  constexpr const char *names[kNumSlotClasses] = {
      "tokens", "input", "stash", "output", "targets", "grad_in", "grad_out"};
  return names[static_cast<size_t>(id)];
}

const char *model::slotClassCategory(SlotClassId id) {
  switch (id) {
  case SlotClassId::Tokens:
  case SlotClassId::Input:
  case SlotClassId::Stash:
  case SlotClassId::Targets:
    return "activations";
  case SlotClassId::Output:
  case SlotClassId::GradIn:
  case SlotClassId::GradOut:
    return "communication";
  }
  return "?";
}

const char *model::streamName(int stream) {
  constexpr const char *names[kNumStreams] = {
      "compute",       "tp",           "dp",
      "load",          "send_forward", "recv_forward",
      "send_backward", "recv_backward"};
  return names[stream];
}

const SlotUse *StageAction::find(SlotClassId id) const {
  for (const SlotUse &use : uses)
    if (use.cls == id)
      return &use;
  return nullptr;
}

namespace {

/// Appends the actions of one stage; slots are numbered afterwards.
class ListBuilder {
public:
  ListBuilder(ScheduleKind kind, int64_t stages, int64_t microBatches,
              int64_t stage, bool hasStash)
      : order_(scheduleOrder(kind, stages, microBatches, stage)),
        microBatches_(microBatches), stage_(stage), first_(stage == 0),
        last_(stage == stages - 1), hasStash_(hasStash) {
    list_.stage = stage;
  }

  StageActions build() {
    add({.kind = ActionKind::Begin, .label = "begin"});
    for (size_t i = 0; i < order_.size(); ++i) {
      fetch(i);
      if (i + 1 < order_.size())
        fetch(i + 1);
      run(order_[i]);
      send(order_[i]);
    }
    add({.kind = ActionKind::Update, .label = "update"});
    numberSlots();
    return std::move(list_);
  }

private:
  using Cls = SlotClassId;

  void add(StageAction action) { list_.actions.push_back(std::move(action)); }

  std::string label(const char *what, int64_t microBatch) const {
    return std::to_string(stage_) + what + std::to_string(microBatch);
  }

  static SlotUse acquire(Cls cls) { return {cls, 0, true, false}; }
  static SlotUse use(Cls cls) { return {cls, 0, false, false}; }
  static SlotUse release(Cls cls) { return {cls, 0, false, true}; }

  /// The load and the receive that compute action `i` needs, once.
  void fetch(size_t i) {
    if (i < fetched_)
      return;
    fetched_ = i + 1;
    auto [pass, mb, chunk] = order_[i];
    bool forward = pass == 'F';
    if (forward ? first_ : last_ && !first_) {
      StageAction load{.kind = ActionKind::Load,
                       .pass = pass,
                       .microBatch = mb,
                       .label = label("LOAD", mb),
                       .stream = StreamLoad};
      if (first_)
        load.uses.push_back(acquire(Cls::Tokens));
      if (last_)
        load.uses.push_back(acquire(Cls::Targets));
      add(std::move(load));
    }
    if (forward && !first_)
      add({.kind = ActionKind::Recv,
           .pass = 'F',
           .microBatch = mb,
           .label = label("RECV_F", mb),
           .stream = StreamRecvForward,
           .channel = 2 * (stage_ - 1),
           .uses = {acquire(Cls::Input)}});
    if (!forward && !last_)
      add({.kind = ActionKind::Recv,
           .pass = 'B',
           .microBatch = mb,
           .label = label("RECV_B", mb),
           .stream = StreamRecvBackward,
           .channel = 2 * stage_ + 1,
           .uses = {acquire(Cls::GradIn)}});
  }

  void run(ComputeAction compute) {
    bool forward = compute.pass == 'F';
    StageAction action{.kind = ActionKind::Run,
                       .pass = compute.pass,
                       .microBatch = compute.microBatch,
                       .label = label(forward ? "F" : "B", compute.microBatch),
                       .stream = StreamCompute};
    Cls source = first_ ? Cls::Tokens : Cls::Input;
    action.uses.push_back(forward ? use(source) : release(source));
    if (hasStash_)
      action.uses.push_back(forward ? acquire(Cls::Stash)
                                    : release(Cls::Stash));
    if (forward && !last_)
      action.uses.push_back(acquire(Cls::Output));
    if (!forward) {
      action.uses.push_back(release(last_ ? Cls::Targets : Cls::GradIn));
      if (!first_)
        action.uses.push_back(acquire(Cls::GradOut));
    }
    add(std::move(action));
  }

  void send(ComputeAction compute) {
    bool forward = compute.pass == 'F';
    if (forward ? last_ : first_)
      return;
    add({.kind = ActionKind::Send,
         .pass = compute.pass,
         .microBatch = compute.microBatch,
         .label = label(forward ? "SEND_F" : "SEND_B", compute.microBatch),
         .stream = forward ? StreamSendForward : StreamSendBackward,
         .channel = forward ? 2 * stage_ : 2 * (stage_ - 1) + 1,
         .uses = {release(forward ? Cls::Output : Cls::GradOut)}});
  }

  /// Numbers the slots of every class from a FIFO of free ones, so that the
  /// one released longest ago, whose last use is likeliest to be over, is
  /// taken first.
  void numberSlots() {
    for (size_t cls = 0; cls < kNumSlotClasses; ++cls) {
      auto id = static_cast<Cls>(cls);
      int64_t live = 0, peak = 0;
      for (const StageAction &action : list_.actions)
        if (const SlotUse *use = action.find(id)) {
          live += use->acquire;
          peak = std::max(peak, live);
          live -= use->release;
        }
      if (peak > 0 && (id == Cls::Output || id == Cls::GradOut))
        peak = std::min<int64_t>(2, microBatches_);
      list_.counts[cls] = peak;

      std::deque<int64_t> free;
      for (int64_t index = 0; index < peak; ++index)
        free.push_back(index);
      std::vector<int64_t> held(microBatches_, -1);
      for (StageAction &action : list_.actions)
        for (SlotUse &use : action.uses) {
          if (use.cls != id)
            continue;
          if (use.acquire) {
            held[action.microBatch] = free.front();
            free.pop_front();
          }
          use.index = held[action.microBatch];
          if (use.release)
            free.push_back(use.index);
        }
    }
  }

  std::vector<ComputeAction> order_;
  int64_t microBatches_, stage_;
  bool first_, last_, hasStash_;
  size_t fetched_ = 0; ///< compute actions whose inputs were asked for
  StageActions list_;
};

} // namespace

StageActions model::buildStageActions(ScheduleKind kind, int64_t stages,
                                      int64_t microBatches, int64_t stage,
                                      bool hasStash) {
  return ListBuilder(kind, stages, microBatches, stage, hasStash).build();
}

std::array<int64_t, kNumSlotClasses> model::slotCounts(ScheduleKind kind,
                                                       int64_t stages,
                                                       int64_t microBatches,
                                                       int64_t stage) {
  int64_t p = stages, m = microBatches;
  bool first = stage == 0, last = stage == p - 1;
  bool gpipe = kind == ScheduleKind::GPipe;
  int64_t inFlight = gpipe ? m : std::min(m, p - stage);
  // The input of the next forward is there before a backward frees one.
  int64_t inputs = std::min(m, inFlight + 1);
  // Backwards that follow each other have two gradients there; they do unless
  // the last stage of 1F1B alternates.
  int64_t gradients = !gpipe && last ? 1 : std::min<int64_t>(2, m);
  int64_t messages = std::min<int64_t>(2, m);

  std::array<int64_t, kNumSlotClasses> counts{};
  auto set = [&](SlotClassId id, bool present, int64_t count) {
    counts[static_cast<size_t>(id)] = present ? count : 0;
  };
  set(SlotClassId::Tokens, first, inputs);
  set(SlotClassId::Input, !first, inputs);
  set(SlotClassId::Stash, true, inFlight);
  set(SlotClassId::Output, !last, messages);
  // A stage that is also the first loads tokens and targets together.
  set(SlotClassId::Targets, last, first ? inputs : gradients);
  set(SlotClassId::GradIn, !last, gradients);
  set(SlotClassId::GradOut, !first, messages);
  return counts;
}
