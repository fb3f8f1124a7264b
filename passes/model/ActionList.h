//===- ActionList.h - what a stage does in one step, in issue order -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Turns a schedule's order into the full list of a stage: loads, receives,
// fragment runs and sends, with the buffers (slots) that each of them binds.
// The planner counts memory from these lists and the compiler emits them, so
// both see the same slots.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACTIONLIST_H
#define RECKON_PASSES_MODEL_ACTIONLIST_H

#include "passes/model/Schedule.h"
#include "runtime/base/Status.h"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace reckon::model {

/// Slot classes in their order in memory.
///   tokens   i32[T], first stage          load .. B
///   input    A[T,H], stages > 0           receive .. B
///   stash    saved values                 F .. B
///   output   A[T,H], stages < last        F .. send
///   targets  i32[T], last stage           load .. B
///   grad_in  A[T,H], stages < last        receive .. B
///   grad_out A[T,H], stages > 0           B .. send
enum class SlotClassId {
  Tokens,
  Input,
  Stash,
  Output,
  Targets,
  GradIn,
  GradOut
};
inline constexpr size_t kNumSlotClasses = 7;

const char *slotClassName(SlotClassId id);
/// Key of the memory report that the class counts for: `activations` or
/// `communication`.
const char *slotClassCategory(SlotClassId id);

/// Streams by index. Actions use Compute, Load and the four of messages; the
/// two in between are for collectives inside fragments.
enum StreamId : int {
  StreamCompute = 0,
  StreamTp = 1,
  StreamDp = 2,
  StreamLoad = 3,
  StreamSendForward = 4,
  StreamRecvForward = 5,
  StreamSendBackward = 6,
  StreamRecvBackward = 7
};
inline constexpr int kNumStreams = 8;
const char *streamName(int stream);

/// One binding of a slot: `acquire` marks the first use of its new content,
/// `release` the last.
struct SlotUse {
  SlotClassId cls = SlotClassId::Tokens;
  int64_t index = 0;
  bool acquire = false;
  bool release = false;
  bool operator==(const SlotUse &) const = default;
};

enum class ActionKind { Begin, Load, Recv, Run, Send, Update };

struct StageAction {
  ActionKind kind = ActionKind::Run;
  /// Run: the fragment. Send and Recv: 'F' carries activations, 'B' gradients.
  /// Load: the pass that needs it first.
  char pass = 'F';
  int64_t microBatch = 0;
  /// `begin`, `update`, `0F3`, `0B3`, `0LOAD3`, `0SEND_F3`, `1RECV_F3`,
  /// `1SEND_B0`, `0RECV_B0`; the number in front is this list's stage.
  std::string label{};
  int stream = StreamCompute;
  /// Send and Recv: 2s forward from stage s to s+1, 2s+1 backward from s+1 to
  /// s; else -1.
  int64_t channel = -1;
  /// In the order of SlotClassId.
  std::vector<SlotUse> uses{};

  const SlotUse *find(SlotClassId id) const;
};

struct StageActions {
  int64_t stage = 0;
  std::vector<StageAction> actions;
  /// Slots of each class: the most that are held at once in list order; two
  /// for output and grad_out (one when m is 1), so that the next result can be
  /// computed while the last one is sent. 0: the stage has no such class.
  std::array<int64_t, kNumSlotClasses> counts{};

  int64_t count(SlotClassId id) const {
    return counts[static_cast<size_t>(id)];
  }
};

/// The list of one stage: begin; for every compute action its own loads and
/// receives unless issued, those of the next one (prefetch), the run, and its
/// send; update. A stage that is first and last loads tokens and targets with
/// one action. `hasStash`: false when nothing is saved between the passes.
StageActions buildStageActions(ScheduleKind kind, int64_t stages,
                               int64_t microBatches, int64_t stage,
                               bool hasStash = true);

/// StageActions::counts without building the list: in closed form, for the
/// search.
std::array<int64_t, kNumSlotClasses> slotCounts(ScheduleKind kind,
                                                int64_t stages,
                                                int64_t microBatches,
                                                int64_t stage);

/// Runs the lists of all stages of one pipeline for two steps under rendezvous
/// semantics: every stream works through its actions in order, a send ends
/// only together with the matching receive at the head of its stream, a run
/// waits for what it receives, a send for what it sends, and an acquired slot
/// for the end of all earlier uses. ExitCode::Internal with the blocked cycle
/// when it cannot finish, or when a channel's two sides disagree.
Status checkDeadlockFree(std::span<const StageActions> stages);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACTIONLIST_H
