//===- StageProgram.cpp - a stage plan bound to one rank ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/StageProgram.h"

#include "runtime/device/StreamDevice.h"

#include <algorithm>

namespace reckon::exec {

using namespace plan;

static_assert(static_cast<int>(device::Kernel::GeluGrad) ==
                  static_cast<int>(Kernel::gelu_grad) &&
              device::kernelCount == static_cast<int>(Kernel::MAX) + 1);
// Codes of fp8 are never communicated, so that the transport does not know
// them.
static_assert(static_cast<int>(device::DType::F8E5M2) ==
                  static_cast<int>(DType::f8e5m2) &&
              static_cast<int>(comm::DType::U8) == static_cast<int>(DType::u8));
static_assert(static_cast<int>(comm::Reduction::Max) ==
              static_cast<int>(Reduction::max));

Result<Connections> connectStage(const StagePlanT &plan, const Coord &coord,
                                 comm::Communicator &communicator) {
  Connections connections;
  const MeshT &mesh = *plan.mesh;
  int self = static_cast<int>(rankOf(mesh, coord));
  for (const auto &group : plan.groups) {
    std::vector<int> ranks = groupRanks(*group, mesh, coord);
    if (std::find(ranks.begin(), ranks.end(), self) == ranks.end()) {
      connections.groups.push_back(std::nullopt);
      continue;
    }
    Result<comm::GroupId> id =
        communicator.createGroup(group->name, std::move(ranks));
    if (!id)
      return id.error();
    connections.groups.push_back(*id);
  }
  for (const auto &channel : plan.channels) {
    bool sends = channel->source_stage == plan.stage;
    Coord peer = coord;
    peer.pp = sends ? channel->target_stage : channel->source_stage;
    Result<comm::ChannelId> id = communicator.createChannel(
        channel->name, static_cast<int>(rankOf(mesh, peer)),
        sends ? comm::Direction::Send : comm::Direction::Receive, channel->id);
    if (!id)
      return id.error();
    connections.channels.push_back(*id);
  }
  return connections;
}

/// Builds a StageProgram; the plan has passed validateStagePlan.
class Binder {
public:
  Binder(const StagePlanT &plan, const Coord &coord,
         const Connections &connections, device::Device &device,
         std::byte *arena)
      : plan_(plan), coord_(coord), connections_(connections), device_(device),
        arena_(arena), program_(new StageProgram) {}

  Result<std::unique_ptr<StageProgram>> run() {
    for (const auto &stream : plan_.streams)
      program_->streams_.push_back(stream->name);
    if (device::StreamDevice *streams = device_.asStreams())
      RECKON_TRY(streams->openStreams(program_->streams_));
    for (const auto &fragment : plan_.fragments)
      RECKON_TRY(bindFragment(*fragment));
    for (const auto &list : plan_.lists)
      RECKON_TRY(bindList(*list));
    return std::move(program_);
  }

private:
  BoundOperand operand(const BufferT &buffer) {
    BoundOperand bound;
    bound.offset = evalExpr(buffer.offset, coord_);
    bound.elements = static_cast<size_t>(elementCount(buffer.shape));
    switch (buffer.region) {
    case Region::state:
      bound.base = arena_ + plan_.states[buffer.index]->offset;
      break;
    case Region::lane:
      bound.base = arena_ + plan_.lanes[buffer.index]->offset;
      break;
    case Region::slot:
      bound.slot = buffer.index;
      break;
    }
    return bound;
  }

  Error refuse(const std::string &where, const std::string &what) {
    return makeError(ExitCode::Incompatible,
                     where + ": " + what + ": compile the plan again");
  }

  Status bindFragment(const FragmentT &fragment) {
    auto bound = std::make_unique<BoundFragment>();
    bound->source = &fragment;
    bound->events.resize(fragment.events);
    bound->instructions.reserve(fragment.instructions.size());
    for (const auto &instruction : fragment.instructions) {
      BoundInstruction target;
      target.op = instruction->op;
      target.stream = instruction->stream;
      target.source = instruction.get();
      for (const auto &input : instruction->inputs)
        target.inputs.push_back(operand(*input));
      for (const auto &output : instruction->outputs)
        target.outputs.push_back(operand(*output));
      program_->maxOperands_ = std::max(
          program_->maxOperands_, target.inputs.size() + target.outputs.size());
      std::string where = "fragment " + fragment.name + ", instruction " +
                          std::to_string(bound->instructions.size());
      if (!instruction->source.empty())
        where += " (" + instruction->source + ")";
      RECKON_TRY(bindOperation(*instruction, where, *bound, target));
      bound->work += target.op != Opcode::record && target.op != Opcode::wait;
      bound->instructions.push_back(std::move(target));
    }
    program_->fragments_.push_back(std::move(bound));
    return Status::success();
  }

  Status bindOperation(const InstructionT &instruction,
                       const std::string &where, BoundFragment &fragment,
                       BoundInstruction &target) {
    switch (instruction.op) {
    case Opcode::launch:
      return prepare(instruction, where, target);
    case Opcode::record:
    case Opcode::wait:
      target.event = &fragment.events[instruction.event];
      return Status::success();
    case Opcode::copy:
      return Status::success();
    case Opcode::all_reduce:
    case Opcode::all_gather:
    case Opcode::reduce_scatter:
      break;
    }
    const auto &group = connections_.groups[instruction.group];
    if (!group)
      return refuse(where, "this rank is no member of group " +
                               plan_.groups[instruction.group]->name);
    target.group = *group;
    target.dtype = static_cast<comm::DType>(instruction.inputs[0]->dtype);
    target.reduction = static_cast<comm::Reduction>(instruction.reduction);
    for (const auto &input : instruction.inputs)
      if (input->dtype != instruction.inputs[0]->dtype)
        return refuse(where, "one message with several data types");
    return Status::success();
  }

  Status prepare(const InstructionT &instruction, const std::string &where,
                 BoundInstruction &target) {
    std::vector<device::Operand> inputs;
    std::vector<device::Operand> outputs;
    auto operandsOf = [](const std::vector<std::unique_ptr<BufferT>> &buffers,
                         std::vector<device::Operand> &operands) {
      for (const auto &buffer : buffers)
        operands.push_back({static_cast<device::DType>(buffer->dtype),
                            elementCount(buffer->shape)});
    };
    operandsOf(instruction.inputs, inputs);
    operandsOf(instruction.outputs, outputs);
    std::vector<int64_t> args;
    for (const auto &arg : instruction.args)
      args.push_back(evalExpr(arg, coord_));
    device::KernelCall call{inputs, outputs, args, instruction.floats,
                            static_cast<int>(instruction.stream)};
    auto kernel =
        device_.prepare(static_cast<device::Kernel>(instruction.kernel), call);
    if (!kernel)
      return makeError(kernel.error().code,
                       where + ": " + kernel.error().message);
    target.kernel = std::move(*kernel);
    return Status::success();
  }

  Status bindList(const ActionListT &list) {
    auto bound = std::make_unique<BoundList>();
    bound->source = &list;
    bound->events.resize(list.events);
    bound->itemsOfStream.resize(plan_.streams.size());
    bound->actions.reserve(list.actions.size());
    for (const auto &action : list.actions) {
      BoundAction target;
      target.source = action.get();
      target.kind = action->kind;
      target.stream = action->stream;
      target.microbatch =
          action->units.empty() ? 0 : action->units[0].microbatch();
      for (const auto &binding : action->bindings) {
        const SlotClassT &cls = *plan_.slot_classes[binding->slot_class];
        target.slots.push_back(arena_ + cls.offset +
                               cls.bytes * binding->index);
      }
      for (uint32_t event : action->waits)
        target.waits.push_back(&bound->events[event]);
      for (uint32_t event : action->records)
        target.records.push_back(&bound->events[event]);
      bound->itemsOfStream[action->stream] +=
          action->waits.size() + action->records.size();
      RECKON_TRY(bindAction(*action, *bound, target));
      bound->actions.push_back(std::move(target));
    }
    program_->lists_.push_back(std::move(bound));
    return Status::success();
  }

  Status bindAction(const ActionT &action, BoundList &list,
                    BoundAction &target) {
    if (action.kind == ActionKind::run) {
      target.fragment = program_->fragments_[action.fragment].get();
      for (const BoundInstruction &instruction : target.fragment->instructions)
        ++list.itemsOfStream[instruction.stream];
      list.work += target.fragment->work;
      return Status::success();
    }
    ++list.itemsOfStream[action.stream];
    ++list.work;
    std::string where =
        "list " + list.source->name + ", action " + action.label;
    program_->maxOperands_ =
        std::max(program_->maxOperands_, action.buffers.size());
    for (const auto &buffer : action.buffers) {
      BoundOperand bound = operand(*buffer);
      if (action.kind != ActionKind::load) {
        if (buffer->dtype != action.buffers[0]->dtype)
          return refuse(where, "one message with several data types");
        target.buffers.push_back(bound);
        continue;
      }
      int64_t rows = int64_t(plan_.micro_batch_size) * plan_.sequence_length;
      if (buffer->dtype != DType::i32 ||
          bound.elements != static_cast<size_t>(rows))
        return refuse(where, "a load needs an i32 buffer of " +
                                 std::to_string(rows) + " tokens");
      if (buffer->region != Region::slot)
        return refuse(where, "a load outside a slot");
      const std::string &name =
          plan_.slot_classes[action.bindings[buffer->index]->slot_class]->name;
      if (name != "tokens" && name != "targets")
        return refuse(where,
                      "expected slot class tokens or targets, got " + name);
      target.loads.push_back({bound, name == "targets"});
      program_->maxLoadElements_ =
          std::max(program_->maxLoadElements_, bound.elements);
    }
    if (action.kind != ActionKind::load) {
      target.dtype = static_cast<comm::DType>(action.buffers[0]->dtype);
      target.channel = connections_.channels[action.channel];
    }
    return Status::success();
  }

  const StagePlanT &plan_;
  Coord coord_;
  const Connections &connections_;
  device::Device &device_;
  std::byte *arena_;
  std::unique_ptr<StageProgram> program_;
};

Result<std::unique_ptr<StageProgram>>
StageProgram::bind(const StagePlanT &plan, const Coord &coord,
                   const Connections &connections, device::Device &device,
                   std::byte *arena) {
  return Binder(plan, coord, connections, device, arena).run();
}

Result<comm::Ticket> post(comm::Communicator &communicator,
                          const BoundInstruction &instruction,
                          comm::Segments in, comm::Segments out) {
  switch (instruction.op) {
  case Opcode::all_reduce:
    return communicator.allReduce(instruction.group, in, out, instruction.dtype,
                                  instruction.reduction);
  case Opcode::all_gather:
    return communicator.allGather(instruction.group, in, out,
                                  instruction.dtype);
  default:
    return communicator.reduceScatter(instruction.group, in, out,
                                      instruction.dtype, instruction.reduction);
  }
}

BoundList *StageProgram::list(const std::string &name) {
  for (const auto &list : lists_)
    if (list->source->name == name)
      return list.get();
  return nullptr;
}

} // namespace reckon::exec
