//===- Execute.cpp - one step of a stage, on terms ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Execute.h"

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

std::string symbols::state(const std::string &name) { return name; }

std::string symbols::message(const ChannelT &channel) {
  return std::string(channel.direction == Direction::forward
                         ? "activations of stage "
                         : "gradient from stage ") +
         std::to_string(channel.source_stage) + " for micro-batch";
}

/// Bytes of this rank's part of a state, without padding.
static int64_t ownBytes(const StateT &state, const MeshT &mesh,
                        unsigned stage) {
  int64_t elements = 1;
  Coord coord;
  coord.pp = stage;
  for (const auto &extent : state.box)
    elements *= evalExpr(extent->size, coord);
  if (!state.flat_axes.empty())
    elements = state.flat_elements;
  return elements * dtypeSize(state.dtype);
}

Executor::Executor(const Stage &stage, TermTable &terms,
                   const ChannelOrder &order)
    : stage_(stage), terms_(terms), order_(order), memory_(terms) {
  for (const auto &state : stage.plan->states) {
    auto begin = static_cast<int64_t>(state->offset);
    auto bytes = static_cast<int64_t>(state->bytes);
    int64_t own =
        std::min(bytes, ownBytes(*state, *stage.plan->mesh, stage.number()));
    auto put = [&](const std::string &name, int64_t at, int64_t size) {
      if (size > 0)
        memory_.write({at, at + size, size, 0, false},
                      terms_.symbol(name, -1, state->dtype, size));
    };
    put(symbols::state(state->name), begin, own);
    put(symbols::kPadding, begin + own, bytes - own);
  }
}

TermId Executor::state(uint32_t index, int64_t begin, int64_t bytes) {
  int64_t at = static_cast<int64_t>(stage_.plan->states[index]->offset) + begin;
  return memory_.read({at, at + bytes, bytes, 0, false});
}

Status Executor::run() {
  for (uint32_t i = 0; i < stage_.list->actions.size(); ++i)
    RECKON_TRY(action(i));
  return Status::success();
}

Status Executor::action(uint32_t number) {
  const ActionT &action = *stage_.list->actions[number];
  for (const auto &binding : action.bindings)
    if (binding->acquire) {
      Range slot = stage_.slot(*binding);
      memory_.clear(slot.begin, slot.end);
    }
  switch (action.kind) {
  case ActionKind::run: {
    const PreparedFragment &fragment = stage_.fragments[action.fragment];
    if (!stage_.plan->lanes.empty()) {
      const LaneT &lane = *stage_.plan->lanes[fragment.source->lane];
      auto begin = static_cast<int64_t>(lane.offset);
      memory_.clear(begin, begin + static_cast<int64_t>(lane.bytes));
    }
    for (size_t i = 0; i < fragment.instructions.size(); ++i)
      RECKON_TRY(execute({number, static_cast<int>(i)},
                         fragment.instructions[i], action));
    break;
  }
  case ActionKind::load:
    RECKON_TRY(load(number, action));
    break;
  case ActionKind::send:
  case ActionKind::recv:
    RECKON_TRY(message(number, action));
    break;
  }
  for (const auto &binding : action.bindings)
    if (binding->release) {
      Range slot = stage_.slot(*binding);
      memory_.clear(slot.begin, slot.end);
    }
  return Status::success();
}

Status Executor::read(Place place, const Operand &operand,
                      const ActionT &action, const char *what, size_t which,
                      TermId &term) {
  Range range = stage_.resolve(operand, action, terms_.functions());
  term = memory_.read(range);
  if (term == kNoTerm)
    return refuse(describe(stage_, place) + " reads bytes " +
                  std::to_string(range.begin) + " to " +
                  std::to_string(range.end) + " of the arena as " + what + " " +
                  std::to_string(which) +
                  ", but nothing has written all of them in this step (or a "
                  "block that differs between ranks lies across)");
  term = terms_.cast(term, operand.dtype);
  return Status::success();
}

/// Outputs that a kernel reads before it writes them: the accumulating ones.
static unsigned updatedOutputs(const InstructionT &source,
                               const PreparedInstruction &instruction,
                               const CoordFunctions &functions, bool &clear) {
  auto accumulates = [&](size_t arg) -> unsigned {
    if (arg >= instruction.args.size())
      return 0;
    FnId f = instruction.args[arg];
    clear = functions.isConstant(f);
    return functions.low(f) != 0 || !clear ? 1 : 0;
  };
  switch (source.kernel) {
  case Kernel::linear_grad_weight:
    return accumulates(2);
  case Kernel::rms_norm_grad_weight:
    return accumulates(1);
  case Kernel::embedding_grad:
  case Kernel::linear_fp8:
    return accumulates(3);
  case Kernel::cross_entropy_loss:
    return 2;
  case Kernel::sum_squares:
  case Kernel::clip_factor:
    return 1;
  case Kernel::adamw:
    return 7;
  default:
    return 0;
  }
}

Status Executor::launch(Place place, const PreparedInstruction &instruction,
                        const ActionT &action) {
  const InstructionT &source = *instruction.source;
  inputs_.clear();
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    TermId term;
    RECKON_TRY(read(place, instruction.inputs[i], action, "input", i, term));
    inputs_.push_back(term);
  }
  bool clear = true;
  unsigned updated =
      updatedOutputs(source, instruction, terms_.functions(), clear);
  if (!clear)
    return refuse(describe(stage_, place) +
                  " adds on some ranks and overwrites on others");
  for (size_t o = 0; o < instruction.outputs.size(); ++o)
    if (updated & (1u << o)) {
      TermId term;
      RECKON_TRY(
          read(place, instruction.outputs[o], action, "output", o, term));
      inputs_.push_back(term);
    }
  for (size_t o = 0; o < instruction.outputs.size(); ++o) {
    const Operand &output = instruction.outputs[o];
    TermId term =
        terms_.kernel(source.kernel, instruction.args, source.floats, inputs_,
                      static_cast<unsigned>(o), output.dtype, output.bytes);
    terms_.setOrigin(term, stage_, place);
    memory_.write(stage_.resolve(output, action, terms_.functions()), term);
  }
  return Status::success();
}

Status Executor::collective(Place place, const PreparedInstruction &instruction,
                            const ActionT &action) {
  const InstructionT &source = *instruction.source;
  results_.clear();
  for (size_t i = 0; i < instruction.inputs.size(); ++i) {
    TermId term;
    RECKON_TRY(read(place, instruction.inputs[i], action, "input", i, term));
    if (source.op != Opcode::copy && instruction.axes)
      term = terms_.collective(source.op, source.reduction, instruction.axes,
                               term, instruction.outputs[i].bytes);
    results_.push_back(term);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    terms_.setOrigin(results_[i], stage_, place);
    memory_.write(
        stage_.resolve(instruction.outputs[i], action, terms_.functions()),
        results_[i]);
  }
  return Status::success();
}

Status Executor::execute(Place place, const PreparedInstruction &instruction,
                         const ActionT &action) {
  Opcode op = instruction.source->op;
  if (op == Opcode::record || op == Opcode::wait)
    return Status::success();
  ++instructions_;
  return op == Opcode::launch ? launch(place, instruction, action)
                              : collective(place, instruction, action);
}

Status Executor::load(uint32_t number, const ActionT &action) {
  for (const Operand &operand : stage_.moved[number]) {
    if (operand.region != Region::slot)
      return refuse(describe(stage_, number) + " loads outside a slot");
    const SlotBindingT &binding = *action.bindings[operand.index];
    const std::string &name =
        stage_.plan->slot_classes[binding.slot_class]->name;
    if (name != "tokens" && name != "targets")
      return refuse(describe(stage_, number) + " loads into a slot of class " +
                    name + ", expected tokens or targets");
    TermId term = terms_.symbol(
        name == "tokens" ? symbols::kTokens : symbols::kTargets,
        action.units[0].microbatch(), operand.dtype, operand.bytes);
    memory_.write(stage_.resolve(operand, action, terms_.functions()), term);
  }
  return Status::success();
}

Status Executor::message(uint32_t number, const ActionT &action) {
  const std::vector<Operand> &buffers = stage_.moved[number];
  const ChannelT &channel = *stage_.plan->channels[action.channel];
  if (buffers.size() != 1 || action.units.size() != 1)
    return refuse(describe(stage_, number) +
                  " moves several buffers or micro-batches in one message, "
                  "expected one");
  const Operand &operand = buffers[0];
  if (action.kind == ActionKind::send) {
    TermId term;
    RECKON_TRY(read({number, -1}, operand, action, "buffer", 0, term));
    sent_.push_back(
        {action.channel, action.units[0].microbatch(), term, {number, -1}});
    return Status::success();
  }
  // Which micro-batch arrives is for the sender to say.
  auto order = order_.find(channel.id);
  size_t which = received_[channel.id]++;
  if (order == order_.end() || which >= order->second.size())
    return refuse(describe(stage_, number) + " receives what nobody sends");
  memory_.write(stage_.resolve(operand, action, terms_.functions()),
                terms_.symbol(symbols::message(channel), order->second[which],
                              operand.dtype, operand.bytes));
  return Status::success();
}
