//===- Interpreter.h - executes action lists on one rank ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One thread, one queue per stream of the plan. The host walks the action list
// and issues a bounded number of items ahead; streams and events alone order
// execution, exactly as on a GPU, so a plan with a missing event fails here
// too. Kernels run when they reach the head of their queue; collectives and
// messages are posted there and polled between kernels.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_INTERPRETER_H
#define RECKON_RUNTIME_EXEC_INTERPRETER_H

#include "runtime/base/Os.h"
#include "runtime/exec/StageProgram.h"

#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace reckon::exec {

/// Writes one half of a micro-batch's samples into host memory.
class BatchSource {
public:
  virtual ~BatchSource() = default;
  virtual Status load(uint32_t microbatch, bool targets,
                      std::span<int32_t> out) = 0;
};

/// How often a kernel ran in a step, and how long in all.
struct KernelTime {
  int64_t calls = 0;
  int64_t nanoseconds = 0;
};

/// Where the time of a step went, in nanoseconds of this rank's thread.
struct StepTimes {
  int64_t compute = 0;       ///< in kernels and copies
  int64_t communication = 0; ///< nothing to run, a collective under way
  int64_t idle = 0;          ///< nothing to run but messages of other stages
  /// By kernel number; copy instructions count as the copy kernel. Their sum is
  /// compute.
  std::array<KernelTime, device::kernelCount> kernels = {};
};

struct InterpreterOptions {
  /// Chooses the next ready queue pseudo-randomly: different orders that the
  /// streams and events allow.
  std::optional<uint64_t> queueSeed;
  /// Called before the item of this number (of those that do work) of a step.
  std::optional<int64_t> faultAt;
  std::function<void()> fault;
  /// Set by a signal handler: stop as soon as possible (Interrupted).
  const std::atomic<bool> *stop = nullptr;
  /// Keep the order in which actions completed.
  bool trace = false;
};

class Interpreter {
public:
  Interpreter(StageProgram &program, comm::Communicator &communicator,
              device::Device &device, Clock &clock, BatchSource &batches,
              InterpreterOptions options);

  /// Runs a list to its end. Allocates nothing unless it fails.
  Status run(BoundList &list);

  const StepTimes &times() const { return times_; }
  /// Actions of the last run in the order in which they completed.
  const std::vector<const plan::ActionT *> &trace() const { return trace_; }
  InterpreterOptions &options() { return options_; }

private:
  enum class ItemKind : uint8_t { Instruction, Action, Record, Wait };

  /// An entry of a stream's queue.
  struct Item {
    ItemKind kind = ItemKind::Instruction;
    BoundAction *action = nullptr;
    BoundInstruction *instruction = nullptr;
    Event *event = nullptr;
    uint64_t ticket = 0;
  };

  /// A ring of fixed capacity.
  struct Queue {
    std::vector<Item> ring;
    size_t head = 0;
    size_t size = 0;
    bool posted = false; ///< the head is under way in the communicator
    comm::Ticket ticket;

    bool empty() const { return size == 0; }
    bool full() const { return size == ring.size(); }
    Item &front() { return ring[head]; }
    void push(const Item &item) { ring[(head + size++) % ring.size()] = item; }
    void pop() {
      head = (head + 1) % ring.size();
      --size;
    }
  };

  /// How far the host has walked the list.
  struct Cursor {
    size_t action = 0;
    size_t step = 0; ///< waits, then items, then records of that action
  };

  enum class Turn : uint8_t { Blocked, Moved, Computed };

  void issue(BoundList &list);
  bool issueOne(BoundList &list);
  bool computes(const Item &item) const;
  bool done(const BoundList &list) const;
  Result<Turn> turn(Queue &queue);
  Result<Turn> instruction(Queue &queue, Item &item);
  Result<Turn> message(Queue &queue, Item &item);
  Status launch(Item &item);
  Status load(BoundAction &action);
  Status copy(Item &item);
  Result<bool> poll(Queue &queue);
  void complete(Queue &queue);
  void beforeWork();
  Result<bool> turnInOrder();
  Result<bool> turnAtRandom();
  Error stuck(const BoundList &list);

  StageProgram &program_;
  comm::Communicator &communicator_;
  device::Device &device_;
  Clock &clock_;
  BatchSource &batches_;
  InterpreterOptions options_;

  std::vector<Queue> queues_;
  Cursor cursor_;
  StepTimes times_;
  int64_t worked_ = 0;
  uint64_t random_ = 0;
  std::vector<void *> pointers_;
  std::vector<comm::Segment> in_;
  std::vector<comm::Segment> out_;
  std::vector<int32_t> staging_;
  std::vector<const plan::ActionT *> trace_;
  std::vector<size_t> candidates_;
};

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_INTERPRETER_H
