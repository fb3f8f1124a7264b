//===- EmitPlan.cpp - from the plan dialect to the plan file --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/EmitPlan.h"

#include "passes/plan/EmitTables.h"
#include "runtime/plan/Manifest.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

namespace {

/// Emits the fragments and lists of one program.
class ProgramEmitter {
public:
  ProgramEmitter(ProgramOp program, plan::StagePlanT &file, TableIndex index)
      : program(program), file(file), index(std::move(index)) {
    for (int number = 1; number <= static_cast<int>(plan::Kernel::MAX);
         ++number) {
      auto kernel = static_cast<plan::Kernel>(number);
      kernels[plan::EnumNameKernel(kernel)] = kernel;
    }
  }

  LogicalResult emit() {
    for (Operation &op : *program.getBody()) {
      if (auto fragment = dyn_cast<FragmentOp>(op)) {
        if (failed(emitFragment(fragment)))
          return failure();
      } else if (auto list = dyn_cast<ActionsOp>(op)) {
        if (failed(emitList(list)))
          return failure();
      }
    }
    return success();
  }

private:
  LogicalResult stream(Operation *op, FlatSymbolRefAttr name,
                       uint32_t &number) {
    if (!name)
      return op->emitOpError("has no stream; run plan-assign-streams first");
    number = index.streams.lookup(name.getValue());
    return success();
  }

  LogicalResult emitFragment(FragmentOp op);
  LogicalResult emitInstruction(FragmentOp fragment, Operation *op,
                                plan::FragmentT &out);
  LogicalResult emitBuffer(FragmentOp fragment, Value value,
                           std::vector<std::unique_ptr<plan::BufferT>> &list);
  LogicalResult emitList(ActionsOp op);
  LogicalResult emitAction(ActionOpInterface op, plan::ActionListT &out);

  ProgramOp program;
  plan::StagePlanT &file;
  TableIndex index;
  llvm::StringMap<plan::Kernel> kernels;
};

LogicalResult
ProgramEmitter::emitBuffer(FragmentOp fragment, Value value,
                           std::vector<std::unique_ptr<plan::BufferT>> &list) {
  auto buffer = std::make_unique<plan::BufferT>();
  emitType(cast<BufferType>(value.getType()), *buffer);
  Place place = placeOf(value, program.getMesh());
  switch (place.kind) {
  case Place::Kind::State:
    buffer->region = plan::Region::state;
    buffer->index = index.states.lookup(place.name);
    break;
  case Place::Kind::Slot: {
    buffer->region = plan::Region::slot;
    auto names = fragment.getSlotNames();
    buffer->index = std::distance(names.begin(), llvm::find(names, place.name));
    break;
  }
  case Place::Kind::Lane:
    buffer->region = plan::Region::lane;
    buffer->index = index.lanes.lookup(fragment.getLane());
    break;
  case Place::Kind::Temp:
    return value.getDefiningOp()->emitOpError(
        "has no place; run plan-allocate-buffers first");
  }
  buffer->offset = emitExpr(place.offset);
  list.push_back(std::move(buffer));
  return success();
}

LogicalResult ProgramEmitter::emitInstruction(FragmentOp fragment,
                                              Operation *op,
                                              plan::FragmentT &out) {
  auto instruction = std::make_unique<plan::InstructionT>();
  instruction->source = sourceOf(op->getLoc());
  FlatSymbolRefAttr streamName;
  if (auto work = dyn_cast<InstructionOpInterface>(op)) {
    streamName = work.getStreamAttr();
    for (Value buffer : work.getIns())
      if (failed(emitBuffer(fragment, buffer, instruction->inputs)))
        return failure();
    for (Value buffer : work.getOuts())
      if (failed(emitBuffer(fragment, buffer, instruction->outputs)))
        return failure();
    if (auto layer = op->getAttrOfType<StringAttr>("layer"))
      instruction->layer = layer.str();
  }
  auto collective = [&](auto op, plan::Opcode opcode) {
    instruction->op = opcode;
    instruction->group = index.groups.lookup(op.getGroup());
  };
  auto event = [&](auto op, plan::Opcode opcode) {
    instruction->op = opcode;
    instruction->event = op.getEvent();
    streamName = op.getStreamAttr();
  };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](LaunchOp op) {
        instruction->op = plan::Opcode::launch;
        instruction->kernel = kernels.lookup(op.getKernel());
        for (auto arg : op.getArgs().getAsRange<ExprAttr>())
          instruction->args.push_back(emitExpr(arg));
        instruction->floats.assign(op.getFloats().begin(),
                                   op.getFloats().end());
        instruction->flops = op.getFlops();
      })
      .Case([&](AllReduceOp op) {
        collective(op, plan::Opcode::all_reduce);
        instruction->reduction =
            static_cast<plan::Reduction>(op.getReduction());
      })
      .Case([&](ReduceScatterOp op) {
        collective(op, plan::Opcode::reduce_scatter);
        instruction->reduction =
            static_cast<plan::Reduction>(op.getReduction());
      })
      .Case([&](AllGatherOp op) { collective(op, plan::Opcode::all_gather); })
      .Case([&](CopyOp op) {
        instruction->op = plan::Opcode::copy;
        if (!op.getSourceOffset())
          return;
        plan::BufferT &source = *instruction->inputs[0];
        source.shape = instruction->outputs[0]->shape;
        source.offset->base += op.getSourceOffset()->getBase();
        for (const ExprTerm &term : op.getSourceOffset()->getTerms())
          source.offset->terms.emplace_back(static_cast<plan::Axis>(term.axis),
                                            term.scale);
      })
      .Case([&](RecordOp op) { event(op, plan::Opcode::record); })
      .Case([&](WaitOp op) { event(op, plan::Opcode::wait); });
  if (failed(stream(op, streamName, instruction->stream)))
    return failure();
  out.instructions.push_back(std::move(instruction));
  return success();
}

LogicalResult ProgramEmitter::emitFragment(FragmentOp op) {
  auto fragment = std::make_unique<plan::FragmentT>();
  fragment->name = op.getSymName().str();
  if (failed(stream(op, op.getHomeAttr(), fragment->home_stream)))
    return failure();
  fragment->lane = index.lanes.lookup(op.getLane());
  for (auto [name, slotClass] :
       llvm::zip(op.getSlotNames(), op.getSlotClasses())) {
    auto formal = std::make_unique<plan::SlotFormalT>();
    formal->name = cast<StringAttr>(name).str();
    formal->slot_class =
        index.slotClasses.lookup(cast<FlatSymbolRefAttr>(slotClass).getValue());
    fragment->slots.push_back(std::move(formal));
  }
  fragment->events = op.getEvents();
  for (Operation &inner : *op.getBody())
    if (isa<InstructionOpInterface, RecordOp, WaitOp>(inner) &&
        failed(emitInstruction(op, &inner, *fragment)))
      return failure();
  file.fragments.push_back(std::move(fragment));
  return success();
}

LogicalResult ProgramEmitter::emitAction(ActionOpInterface op,
                                         plan::ActionListT &out) {
  auto action = std::make_unique<plan::ActionT>();
  action->label = op.getLabel().str();
  action->source = sourceOf(op.getLoc());
  if (failed(stream(op, op.getStreamAttr(), action->stream)))
    return failure();
  if (auto number = op->getAttrOfType<IntegerAttr>("microbatch"))
    action->units.emplace_back(0, static_cast<uint32_t>(number.getInt()));
  for (auto binding : op.getBindings().getAsRange<BindingAttr>()) {
    auto entry = std::make_unique<plan::SlotBindingT>();
    entry->slot_class =
        index.slotClasses.lookup(binding.getSlotClass().getValue());
    entry->index = binding.getIndex();
    entry->acquire = binding.getAcquire();
    entry->release = binding.getRelease();
    action->bindings.push_back(std::move(entry));
  }
  if (auto buffers = op->getAttrOfType<ArrayAttr>("buffers"))
    for (auto [number, type] : llvm::enumerate(buffers)) {
      auto buffer = std::make_unique<plan::BufferT>();
      emitType(cast<BufferType>(cast<TypeAttr>(type).getValue()), *buffer);
      buffer->region = plan::Region::slot;
      buffer->index = static_cast<uint32_t>(number);
      buffer->offset = std::make_unique<plan::ExprT>();
      action->buffers.push_back(std::move(buffer));
    }
  action->waits.assign(op.getWaits().begin(), op.getWaits().end());
  action->records.assign(op.getRecords().begin(), op.getRecords().end());
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](RunOp run) {
        action->kind = plan::ActionKind::run;
        action->fragment = index.fragments.lookup(run.getFragment());
      })
      .Case([&](SendOp send) {
        action->kind = plan::ActionKind::send;
        action->channel = index.channels.lookup(send.getChannel());
      })
      .Case([&](RecvOp recv) {
        action->kind = plan::ActionKind::recv;
        action->channel = index.channels.lookup(recv.getChannel());
      })
      .Case([&](LoadOp) { action->kind = plan::ActionKind::load; });
  out.actions.push_back(std::move(action));
  return success();
}

LogicalResult ProgramEmitter::emitList(ActionsOp op) {
  auto list = std::make_unique<plan::ActionListT>();
  list->name = op.getSymName().str();
  list->events = op.getEvents();
  for (auto action : op.getBody()->getOps<ActionOpInterface>())
    if (failed(emitAction(action, *list)))
      return failure();
  file.lists.push_back(std::move(list));
  return success();
}

} // namespace

FailureOr<std::vector<std::unique_ptr<plan::StagePlanT>>>
reckon::planir::emitPlan(ModuleOp module) {
  std::vector<std::unique_ptr<plan::StagePlanT>> files;
  for (auto program : module.getBody()->getOps<ProgramOp>()) {
    if (program.getStage() != files.size())
      return program.emitOpError()
             << "is stage " << program.getStage() << ", expected stage "
             << files.size() << " here";
    auto file = std::make_unique<plan::StagePlanT>();
    file->version = plan::kPlanFormat;
    auto index = emitTables(program, *file);
    if (failed(index) ||
        failed(ProgramEmitter(program, *file, std::move(*index)).emit()))
      return failure();
    files.push_back(std::move(file));
  }
  return files;
}
