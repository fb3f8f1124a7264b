//===- Program.cpp - the stages of a plan, ready to be reasoned about -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Program.h"

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

Error prove::refuse(const std::string &what) {
  return makeError(ExitCode::Mismatch, what);
}

Range Stage::slot(const SlotBindingT &binding) const {
  const SlotClassT &cls = *plan->slot_classes[binding.slot_class];
  auto begin = static_cast<int64_t>(cls.offset + cls.bytes * binding.index);
  auto bytes = static_cast<int64_t>(cls.bytes);
  return {begin, begin + bytes, bytes, 0, false};
}

Range Stage::resolve(const Operand &operand, const ActionT &action,
                     CoordFunctions &functions) const {
  int64_t base = 0;
  switch (operand.region) {
  case Region::state:
    base = static_cast<int64_t>(plan->states[operand.index]->offset);
    break;
  case Region::lane:
    base = static_cast<int64_t>(plan->lanes[operand.index]->offset);
    break;
  case Region::slot:
    base = slot(*action.bindings[operand.index]).begin;
    break;
  }
  int64_t low = base + functions.low(operand.offset);
  if (!operand.varies)
    return {low, low + operand.bytes, operand.bytes, operand.offset, false};
  return {low, base + functions.high(operand.offset) + operand.bytes,
          operand.bytes, functions.shifted(operand.offset, base), true};
}

const PreparedInstruction *Stage::instruction(uint32_t action,
                                              int index) const {
  if (index < 0)
    return nullptr;
  return &fragments[list->actions[action]->fragment].instructions[index];
}

namespace {

class Preparer {
public:
  Preparer(Program &program, const StagePlanT &plan)
      : program_(program), plan_(plan) {}

  Status run(Stage &stage) {
    stage.plan = &plan_;
    for (const auto &list : plan_.lists)
      if (list->name == "step")
        stage.list = list.get();
    if (!stage.list)
      return refuse("stage " + std::to_string(plan_.stage) +
                    " has no list \"step\"");
    stage.numEvents = stage.list->events;
    for (const auto &fragment : plan_.fragments)
      prepareFragment(*fragment, stage);
    for (const auto &action : stage.list->actions) {
      stage.moved.emplace_back();
      for (const auto &buffer : action->buffers)
        operand(*buffer, stage.moved.back());
    }
    return Status::success();
  }

private:
  void operand(const BufferT &buffer, std::vector<Operand> &list) {
    Operand operand;
    operand.region = buffer.region;
    operand.index = buffer.index;
    operand.dtype = buffer.dtype;
    operand.bytes = elementCount(buffer.shape) * dtypeSize(buffer.dtype);
    operand.offset = program_.functions.of(buffer.offset, plan_.stage);
    operand.varies = !program_.functions.isConstant(operand.offset);
    list.push_back(operand);
  }

  void prepareFragment(const FragmentT &fragment, Stage &stage) {
    PreparedFragment prepared;
    prepared.source = &fragment;
    prepared.firstEvent = stage.numEvents;
    stage.numEvents += fragment.events;
    for (const auto &source : fragment.instructions) {
      PreparedInstruction instruction;
      instruction.source = source.get();
      for (const auto &input : source->inputs)
        operand(*input, instruction.inputs);
      for (const auto &output : source->outputs)
        operand(*output, instruction.outputs);
      for (const auto &arg : source->args)
        instruction.args.push_back(program_.functions.of(arg, plan_.stage));
      if (source->op == Opcode::all_reduce ||
          source->op == Opcode::all_gather ||
          source->op == Opcode::reduce_scatter) {
        for (Axis axis : plan_.groups[source->group]->axes)
          instruction.axes |= 1u << static_cast<unsigned>(axis);
        instruction.axes = program_.functions.realAxes(instruction.axes);
      }
      prepared.instructions.push_back(std::move(instruction));
    }
    stage.fragments.push_back(std::move(prepared));
  }

  Program &program_;
  const StagePlanT &plan_;
};

} // namespace

Status prove::prepare(std::span<const StagePlanT *const> stages,
                      Program &program) {
  for (size_t i = 0; i < stages.size(); ++i) {
    bool sameMesh = true;
    for (Axis axis : kRankOrder)
      sameMesh &=
          axisSize(*stages[i]->mesh, axis) == axisSize(program.mesh(), axis);
    if (!sameMesh || stages[i]->stage != i ||
        stages.size() != program.mesh().pp)
      return refuse("stage file " + std::to_string(i) +
                    " is of another mesh or another stage than its place");
    Stage stage;
    RECKON_TRY(Preparer(program, *stages[i]).run(stage));
    program.stages.push_back(std::move(stage));
  }
  return Status::success();
}

// --- Descriptions -----------------------------------------------------------

std::string prove::describe(const Stage &stage, uint32_t action) {
  Coord coord;
  coord.pp = stage.number();
  const MeshT &mesh = *stage.plan->mesh;
  std::string text = describeRank(mesh, rankOf(mesh, coord)) + ", action " +
                     stage.list->actions[action]->label;
  return text;
}

static std::string operation(const Stage &stage, const InstructionT &source) {
  switch (source.op) {
  case Opcode::launch:
    return EnumNameKernel(source.kernel);
  case Opcode::record:
  case Opcode::wait:
    return std::string(EnumNameOpcode(source.op)) + " event " +
           std::to_string(source.event);
  case Opcode::copy:
    return "copy";
  case Opcode::all_gather:
    return "all_gather over " + stage.plan->groups[source.group]->name;
  case Opcode::all_reduce:
  case Opcode::reduce_scatter:
    break;
  }
  return std::string(EnumNameOpcode(source.op)) + " " +
         EnumNameReduction(source.reduction) + " over " +
         stage.plan->groups[source.group]->name;
}

std::string prove::describe(const Stage &stage, Place place) {
  std::string text = describe(stage, place.action);
  const ActionT &action = *stage.list->actions[place.action];
  std::string where = action.source;
  if (const PreparedInstruction *instruction =
          stage.instruction(place.action, place.instruction)) {
    const InstructionT &source = *instruction->source;
    text += ", fragment " + stage.fragments[action.fragment].source->name +
            ", instruction " + std::to_string(place.instruction) + ": " +
            operation(stage, source);
    where = source.layer;
    if (!source.source.empty())
      where += (where.empty() ? "" : ", ") + source.source;
  }
  return where.empty() ? text : text + " (" + where + ")";
}
