//===- Interpreter.cpp - executes action lists on one rank ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/Interpreter.h"

#include <algorithm>

namespace reckon::exec {

using namespace plan;

/// Items issued ahead of execution on one stream. Far more than a schedule
/// keeps in flight, so a full queue never holds back what another one needs.
static constexpr size_t kRunAhead = 4096;

Interpreter::Interpreter(StageProgram &program,
                         comm::Communicator &communicator,
                         device::Device &device, Clock &clock,
                         BatchSource &batches, ExecutorOptions options)
    : Executor(std::move(options)), program_(program),
      communicator_(communicator), device_(device), clock_(clock),
      batches_(batches), queues_(program.numStreams()),
      random_(options_.queueSeed.value_or(0) * 2 + 1) {
  pointers_.resize(program.maxOperands());
  in_.resize(program.maxOperands());
  out_.resize(program.maxOperands());
  staging_.resize(program.maxLoadElements());
  candidates_.resize(program.numStreams());
}

// --- Issuing ----------------------------------------------------------------

/// Issues the item under the cursor if its queue has room.
bool Interpreter::issueOne(BoundList &list) {
  BoundAction &action = list.actions[cursor_.action];
  size_t items = action.fragment ? action.fragment->instructions.size() : 1;
  if (cursor_.step == 0)
    action.remaining = static_cast<uint32_t>(items);

  size_t step = cursor_.step;
  size_t waits = action.waits.size();
  size_t total = waits + items + action.records.size();
  if (step < total) {
    Item item;
    item.action = &action;
    uint32_t stream = action.stream;
    if (step < waits) {
      item.kind = ItemKind::Wait;
      item.event = action.waits[step];
    } else if (step >= waits + items) {
      item.kind = ItemKind::Record;
      item.event = action.records[step - waits - items];
    } else if (!action.fragment) {
      item.kind = ItemKind::Action;
    } else {
      BoundInstruction &instruction =
          action.fragment->instructions[step - waits];
      item.instruction = &instruction;
      stream = instruction.stream;
      item.event = instruction.event;
      item.kind = instruction.op == Opcode::record ? ItemKind::Record
                  : instruction.op == Opcode::wait ? ItemKind::Wait
                                                   : ItemKind::Instruction;
    }
    if (queues_[stream].full())
      return false;
    if (item.kind == ItemKind::Record)
      item.ticket = ++item.event->issued;
    if (item.kind == ItemKind::Wait)
      item.ticket = item.event->issued;
    queues_[stream].push(item);
    ++cursor_.step;
  }
  if (cursor_.step == total) {
    if (items == 0 && options_.trace)
      trace_.push_back(action.source);
    cursor_ = {cursor_.action + 1, 0};
  }
  return true;
}

void Interpreter::issue(BoundList &list) {
  while (cursor_.action < list.actions.size() && issueOne(list)) {
  }
}

bool Interpreter::done(const BoundList &list) const {
  return cursor_.action == list.actions.size() &&
         std::all_of(queues_.begin(), queues_.end(),
                     [](const Queue &queue) { return queue.empty(); });
}

// --- Executing --------------------------------------------------------------

bool Interpreter::computes(const Item &item) const {
  if (item.kind == ItemKind::Action)
    return item.action->kind == ActionKind::load;
  return item.kind == ItemKind::Instruction &&
         (item.instruction->op == Opcode::launch ||
          item.instruction->op == Opcode::copy);
}

void Interpreter::beforeWork() {
  if (options_.faultAt && *options_.faultAt == worked_ && options_.fault)
    options_.fault();
  ++worked_;
}

/// Takes the head off its queue and counts it for its action.
void Interpreter::complete(Queue &queue) {
  Item &item = queue.front();
  bool counts = item.kind == ItemKind::Action || item.instruction;
  if (counts && --item.action->remaining == 0 && options_.trace)
    trace_.push_back(item.action->source);
  queue.posted = false;
  queue.pop();
}

Status Interpreter::launch(Item &item) {
  const BoundInstruction &instruction = *item.instruction;
  const std::vector<std::byte *> &slots = item.action->slots;
  size_t n = 0;
  for (const BoundOperand &input : instruction.inputs)
    pointers_[n++] = input.address(slots);
  for (const BoundOperand &output : instruction.outputs)
    pointers_[n++] = output.address(slots);
  Status status = instruction.kernel->run({pointers_.data(), n});
  if (status.ok())
    return status;
  return atInstruction(status.error(), *item.action->source,
                       *instruction.source);
}

Status Interpreter::copy(Item &item) {
  const BoundInstruction &instruction = *item.instruction;
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    const BoundOperand &from = instruction.inputs[i];
    int64_t bytes = static_cast<int64_t>(from.elements) *
                    dtypeSize(instruction.source->inputs[i]->dtype);
    RECKON_TRY(
        device_.copyWithin(instruction.outputs[i].address(item.action->slots),
                           from.address(item.action->slots), bytes));
  }
  return Status::success();
}

Status Interpreter::load(BoundAction &action) {
  for (const BoundLoad &load : action.loads) {
    std::span<int32_t> host{staging_.data(), load.target.elements};
    RECKON_TRY(batches_.load(action.microbatch, load.isTargets, host));
    RECKON_TRY(device_.copyToDevice(
        load.target.address(action.slots), host.data(),
        static_cast<int64_t>(host.size() * sizeof(int32_t))));
  }
  return Status::success();
}

/// Whether the operation that the queue's head posted is complete.
Result<bool> Interpreter::poll(Queue &queue) {
  Result<bool> ready = communicator_.test(queue.ticket);
  if (ready && *ready)
    complete(queue);
  return ready;
}

Result<Interpreter::Turn> Interpreter::instruction(Queue &queue, Item &item) {
  BoundInstruction &instruction = *item.instruction;
  beforeWork();
  if (instruction.op == Opcode::launch || instruction.op == Opcode::copy) {
    int64_t start = clock_.monotonicNs();
    RECKON_TRY(instruction.op == Opcode::launch ? launch(item) : copy(item));
    int64_t spent = clock_.monotonicNs() - start;
    Kernel kernel = instruction.op == Opcode::launch
                        ? instruction.source->kernel
                        : Kernel::copy;
    KernelTime &time = times_.kernels[static_cast<size_t>(kernel)];
    ++time.calls;
    time.nanoseconds += spent;
    times_.compute += spent;
    complete(queue);
    return Turn::Computed;
  }
  size_t n = instruction.inputs.size();
  for (size_t i = 0; i < n; ++i) {
    in_[i] = {instruction.inputs[i].address(item.action->slots),
              instruction.inputs[i].elements};
    out_[i] = {instruction.outputs[i].address(item.action->slots),
               instruction.outputs[i].elements};
  }
  comm::Segments in{in_.data(), n};
  comm::Segments out{out_.data(), n};
  Result<comm::Ticket> ticket = post(communicator_, instruction, in, out);
  if (!ticket)
    return ticket.error();
  queue.ticket = *ticket;
  queue.posted = true;
  return Turn::Moved;
}

Result<Interpreter::Turn> Interpreter::message(Queue &queue, Item &item) {
  BoundAction &action = *item.action;
  beforeWork();
  if (action.kind == ActionKind::load) {
    RECKON_TRY(load(action));
    complete(queue);
    return Turn::Computed;
  }
  size_t n = action.buffers.size();
  for (size_t i = 0; i < n; ++i)
    in_[i] = {action.buffers[i].address(action.slots),
              action.buffers[i].elements};
  comm::Segments segments{in_.data(), n};
  Result<comm::Ticket> ticket =
      action.kind == ActionKind::send
          ? communicator_.send(action.channel, segments, action.dtype)
          : communicator_.receive(action.channel, segments, action.dtype);
  if (!ticket)
    return ticket.error();
  queue.ticket = *ticket;
  queue.posted = true;
  return Turn::Moved;
}

/// Does the head of a queue, if it can be done now.
Result<Interpreter::Turn> Interpreter::turn(Queue &queue) {
  if (queue.empty())
    return Turn::Blocked;
  if (queue.posted) {
    Result<bool> ready = poll(queue);
    if (!ready)
      return ready.error();
    return *ready ? Turn::Moved : Turn::Blocked;
  }
  Item &item = queue.front();
  switch (item.kind) {
  case ItemKind::Record:
    item.event->completed = std::max(item.event->completed, item.ticket);
    complete(queue);
    return Turn::Moved;
  case ItemKind::Wait:
    if (item.event->completed < item.ticket)
      return Turn::Blocked;
    complete(queue);
    return Turn::Moved;
  case ItemKind::Instruction:
    return instruction(queue, item);
  case ItemKind::Action:
    return message(queue, item);
  }
  return Turn::Blocked;
}

/// Everything that costs nothing first, so that messages leave early, then one
/// kernel. Whether anything happened.
Result<bool> Interpreter::turnInOrder() {
  bool any = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (Queue &queue : queues_)
      while (!queue.empty() && (queue.posted || !computes(queue.front()))) {
        Result<Turn> result = turn(queue);
        if (!result)
          return result.error();
        if (*result == Turn::Blocked)
          break;
        moved = any = true;
      }
  }
  for (Queue &queue : queues_) {
    if (queue.empty() || queue.posted || !computes(queue.front()))
      continue;
    Result<Turn> result = turn(queue);
    if (!result)
      return result.error();
    return true;
  }
  return any;
}

/// One item of a queue chosen at random among those that can move.
Result<bool> Interpreter::turnAtRandom() {
  for (size_t i = 0; i < candidates_.size(); ++i)
    candidates_[i] = i;
  for (size_t left = candidates_.size(); left > 0; --left) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    size_t pick = (random_ >> 33) % left;
    Result<Turn> result = turn(queues_[candidates_[pick]]);
    if (!result)
      return result.error();
    if (*result != Turn::Blocked)
      return true;
    candidates_[pick] = candidates_[left - 1];
  }
  return false;
}

Error Interpreter::stuck(const BoundList &list) {
  std::string text = "list " + list.source->name +
                     " cannot go on, every stream waits for an event that "
                     "nothing will record:";
  for (size_t i = 0; i < queues_.size(); ++i)
    if (!queues_[i].empty())
      text += " stream " + std::to_string(i) + " in " +
              queues_[i].front().action->source->label + ";";
  return makeError(ExitCode::Hang, text + " the plan is wrong, report it");
}

Status Interpreter::run(BoundList &list) {
  for (size_t i = 0; i < queues_.size(); ++i) {
    Queue &queue = queues_[i];
    size_t capacity = std::clamp<size_t>(list.itemsOfStream[i], 1, kRunAhead);
    if (queue.ring.size() < capacity)
      queue.ring.resize(capacity); // the first run of a list only
    queue.head = queue.size = 0;
    queue.posted = false;
  }
  if (options_.trace)
    trace_.reserve(list.actions.size());
  trace_.clear();
  cursor_ = {};
  times_ = {};
  worked_ = 0;

  while (true) {
    issue(list);
    if (done(list))
      return Status::success();
    if (options_.stop && options_.stop->load(std::memory_order_relaxed))
      return makeError(ExitCode::Interrupted,
                       "interrupted by a signal; nothing was saved");
    Result<bool> moved = options_.queueSeed ? turnAtRandom() : turnInOrder();
    if (!moved)
      return moved.error();
    int64_t start = clock_.monotonicNs();
    Result<bool> progressed = communicator_.progress();
    if (!progressed)
      return progressed.error();
    if (*moved)
      continue;

    bool posted = false;
    bool collective = false;
    for (Queue &queue : queues_)
      if (!queue.empty() && queue.posted) {
        posted = true;
        collective |= queue.front().kind == ItemKind::Instruction;
      }
    if (!posted)
      return stuck(list);
    if (!*progressed)
      communicator_.idle();
    (collective ? times_.communication : times_.idle) +=
        clock_.monotonicNs() - start;
  }
}

} // namespace reckon::exec
