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

#include "runtime/exec/Executor.h"

namespace reckon::exec {

class Interpreter final : public Executor {
public:
  Interpreter(StageProgram &program, comm::Communicator &communicator,
              device::Device &device, Clock &clock, BatchSource &batches,
              ExecutorOptions options);

  /// Runs a list to its end. Allocates nothing unless it fails.
  Status run(BoundList &list) override;

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

  std::vector<Queue> queues_;
  Cursor cursor_;
  int64_t worked_ = 0;
  uint64_t random_ = 0;
  std::vector<void *> pointers_;
  std::vector<comm::Segment> in_;
  std::vector<comm::Segment> out_;
  std::vector<int32_t> staging_;
  std::vector<size_t> candidates_;
};

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_INTERPRETER_H
