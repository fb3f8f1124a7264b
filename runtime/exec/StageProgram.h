//===- StageProgram.h - a stage plan bound to one rank --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A plan is written for all ranks of a stage. Binding evaluates its
// expressions at one rank's coordinates, resolves buffers to addresses in that
// rank's arena, prepares every kernel and creates every group and channel, so
// that executing a step only follows pointers.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_STAGEPROGRAM_H
#define RECKON_RUNTIME_EXEC_STAGEPROGRAM_H

#include "runtime/base/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/device/Device.h"
#include "runtime/plan/Coordinates.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon::exec {

/// An event as CUDA has them: a record that is issued gets the next ticket and
/// completes it when its stream reaches it; a wait is for the newest ticket at
/// the time the wait is issued. So overlapping invocations of a fragment can
/// share its events.
struct Event {
  uint64_t issued = 0;
  uint64_t completed = 0;
  uint32_t native = 0; ///< of a stream device
};

/// Where an operand lies: `base` in the arena, or an offset from the slot that
/// the running action binds at position `slot`.
struct BoundOperand {
  std::byte *base = nullptr; ///< null: relative to a slot
  int64_t offset = 0;
  uint32_t slot = 0;
  size_t elements = 0;

  std::byte *address(const std::vector<std::byte *> &slots) const {
    return (base ? base : slots[slot]) + offset;
  }
};

struct BoundInstruction {
  plan::Opcode op = plan::Opcode::launch;
  uint32_t stream = 0;
  std::vector<BoundOperand> inputs;
  std::vector<BoundOperand> outputs;
  std::unique_ptr<device::PreparedKernel> kernel; ///< launch
  comm::GroupId group{};                          ///< collectives
  comm::DType dtype = comm::DType::F32;
  comm::Reduction reduction = comm::Reduction::Sum;
  Event *event = nullptr; ///< record, wait
  const plan::InstructionT *source = nullptr;
};

struct BoundFragment {
  std::vector<BoundInstruction> instructions;
  std::vector<Event> events;
  int64_t work = 0; ///< instructions that do something
  const plan::FragmentT *source = nullptr;
};

/// One buffer of a load: which half of the sample goes there.
struct BoundLoad {
  BoundOperand target;
  bool isTargets = false;
};

struct BoundAction {
  plan::ActionKind kind = plan::ActionKind::run;
  uint32_t stream = 0;
  uint32_t microbatch = 0;
  BoundFragment *fragment = nullptr;
  std::vector<std::byte *> slots; ///< address of each binding's slot
  comm::ChannelId channel{};
  comm::DType dtype = comm::DType::F32;
  std::vector<BoundOperand> buffers; ///< send, recv
  std::vector<BoundLoad> loads;
  std::vector<Event *> waits;
  std::vector<Event *> records;
  uint32_t remaining = 0; ///< items of this action that have not completed
  const plan::ActionT *source = nullptr;
};

struct BoundList {
  std::vector<BoundAction> actions;
  std::vector<Event> events;
  std::vector<size_t> itemsOfStream; ///< queue entries of one pass, per stream
  int64_t work = 0; ///< entries that do something: all but records and waits
  const plan::ActionListT *source = nullptr;
};

/// Groups and channels of one rank. Every rank creates its own in plan order,
/// before the communicator starts.
struct Connections {
  std::vector<std::optional<comm::GroupId>> groups; ///< empty: not a member
  std::vector<comm::ChannelId> channels;
};
Result<Connections> connectStage(const plan::StagePlanT &plan,
                                 const plan::Coord &coord,
                                 comm::Communicator &communicator);

/// Posts a collective of the plan.
Result<comm::Ticket> post(comm::Communicator &communicator,
                          const BoundInstruction &instruction,
                          comm::Segments in, comm::Segments out);

/// A stage plan bound to one rank. The plan, device and arena outlive it.
class StageProgram {
public:
  static Result<std::unique_ptr<StageProgram>>
  bind(const plan::StagePlanT &plan, const plan::Coord &coord,
       const Connections &connections, device::Device &device,
       std::byte *arena);

  /// The list of this name, or null.
  BoundList *list(const std::string &name);

  size_t numStreams() const { return streams_.size(); }
  const std::string &streamName(size_t stream) const {
    return streams_[stream];
  }
  const std::vector<std::unique_ptr<BoundFragment>> &fragments() const {
    return fragments_;
  }
  size_t maxOperands() const { return maxOperands_; }
  size_t maxLoadElements() const { return maxLoadElements_; }

private:
  friend class Binder;
  std::vector<std::unique_ptr<BoundFragment>> fragments_;
  std::vector<std::unique_ptr<BoundList>> lists_;
  std::vector<std::string> streams_;
  size_t maxOperands_ = 0;
  size_t maxLoadElements_ = 0;
};

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_STAGEPROGRAM_H
