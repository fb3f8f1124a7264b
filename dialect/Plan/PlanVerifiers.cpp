//===- PlanVerifiers.cpp - what a plan program must satisfy ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What one op, or one list of ops, can show to be wrong by itself. Ordering
// between streams is verify-plan's job.
//
//===----------------------------------------------------------------------===//

#include "dialect/Plan/KernelTable.h"
#include "dialect/Plan/Plan.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reckon::planir;

/// The program around an op; every parent constraint has been verified.
static ProgramOp programOf(Operation *op) {
  return op->getParentOfType<ProgramOp>();
}

/// The op of type OpT that `symbol` names, or an error.
template <typename OpT>
static FailureOr<OpT> resolve(Operation *op, FlatSymbolRefAttr symbol,
                              SymbolTableCollection &tables, StringRef what) {
  auto found =
      tables.lookupNearestSymbolFrom<OpT>(programOf(op).getOperation(), symbol);
  if (!found)
    return op->emitOpError() << "refers to " << what << " " << symbol
                             << ", which the program does not have";
  return found;
}

//===----------------------------------------------------------------------===//
// Program and tables
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verify() {
  if (getMesh().size() != kNumAxes)
    return emitOpError() << "mesh has " << getMesh().size()
                         << " degrees, expected tp, cp, ep, dp, pp";
  for (auto [axis, degree] : llvm::enumerate(getMesh()))
    if (degree < 1)
      return emitOpError() << "degree of "
                           << stringifyAxis(static_cast<Axis>(axis)) << " is "
                           << degree << ", expected at least 1";
  int64_t stages = getMesh()[static_cast<size_t>(Axis::pp)];
  if (static_cast<int64_t>(getStage()) < 0 ||
      static_cast<int64_t>(getStage()) >= stages)
    return emitOpError() << "is stage " << getStage() << " of " << stages;
  return success();
}

LogicalResult ProgramOp::verifyRegions() {
  // Once there is an arena, every table entry lies in it and none overlap.
  std::optional<uint64_t> arena = getArenaBytes();
  struct Range {
    int64_t begin, end;
    Operation *op;
  };
  SmallVector<Range> ranges;
  auto add = [&](Operation *op, std::optional<uint64_t> offset,
                 int64_t bytes) -> LogicalResult {
    if (!arena)
      return success();
    if (!offset)
      return op->emitOpError("has no offset although the program has an arena");
    int64_t begin = static_cast<int64_t>(*offset);
    if (begin + bytes > static_cast<int64_t>(*arena))
      return op->emitOpError() << "ends at byte " << begin + bytes
                               << " of an arena of " << *arena;
    if (bytes > 0)
      ranges.push_back({begin, begin + bytes, op});
    return success();
  };
  for (Operation &op : *getBody()) {
    LogicalResult placed = success();
    if (auto state = dyn_cast<StateOp>(op))
      placed = add(&op, state.getOffset(), state.getBytes());
    else if (auto slot = dyn_cast<SlotClassOp>(op))
      placed = add(&op, slot.getOffset(), slot.getBytes() * slot.getCount());
    else if (auto lane = dyn_cast<LaneOp>(op))
      placed = add(&op, lane.getOffset(), lane.getBytes().value_or(0));
    if (failed(placed))
      return failure();
  }
  llvm::sort(ranges, [](const Range &a, const Range &b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end) {
      InFlightDiagnostic diag = ranges[i].op->emitOpError()
                                << "starts at byte " << ranges[i].begin
                                << ", inside another entry's bytes";
      diag.attachNote(ranges[i - 1].op->getLoc())
          << "which end at byte " << ranges[i - 1].end;
      return failure();
    }
  llvm::DenseSet<int64_t> channels;
  for (auto channel : getBody()->getOps<ChannelOp>())
    if (!channels.insert(channel.getId()).second)
      return channel.emitOpError()
             << "has the number " << channel.getId() << " of another channel";
  return success();
}

static LogicalResult verifyDistinctAxes(Operation *op, ArrayRef<int64_t> axes) {
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= static_cast<int64_t>(kNumAxes))
      return op->emitOpError() << "has no axis number " << axis;
    if (!seen.insert(axis).second)
      return op->emitOpError()
             << "names axis " << stringifyAxis(static_cast<Axis>(axis))
             << " twice";
  }
  return success();
}

LogicalResult GroupOp::verify() {
  if (getAxes().empty())
    return emitOpError("needs at least one axis");
  if (getFilters())
    for (auto filter : getFilters()->getAsRange<AxisFilterAttr>()) {
      int64_t degree =
          programOf(*this).getMesh()[static_cast<size_t>(filter.getAxis())];
      if (filter.getValues().empty())
        return emitOpError("has a filter without values");
      for (int64_t value : filter.getValues())
        if (value < 0 || value >= degree)
          return emitOpError()
                 << "filters " << stringifyAxis(filter.getAxis()) << " by "
                 << value << ", outside of 0 .. " << degree - 1;
    }
  return verifyDistinctAxes(*this, getAxes());
}

LogicalResult ChannelOp::verify() {
  int64_t stages = programOf(*this).getMesh()[static_cast<size_t>(Axis::pp)];
  int64_t stage = programOf(*this).getStage();
  int64_t source = getSource(), target = getTarget();
  if (source < 0 || source >= stages || target < 0 || target >= stages)
    return emitOpError() << "connects stages " << source << " and " << target
                         << " of " << stages;
  if (source == target)
    return emitOpError() << "connects stage " << source << " to itself";
  if (source != stage && target != stage)
    return emitOpError() << "connects stages " << source << " and " << target
                         << " in the program of stage " << stage;
  return success();
}

LogicalResult StateOp::verify() {
  auto type = cast<BufferType>(getType());
  ArrayRef<int64_t> degrees = programOf(*this).getMesh();
  if (getBox().size() != getGlobalShape().size())
    return emitOpError() << "box has " << getBox().size()
                         << " extents, the global shape "
                         << getGlobalShape().size();
  int64_t boxElements = 1;
  bool oneSize = true;
  for (auto [dim, attr] : llvm::enumerate(getBox())) {
    auto extent = cast<ExtentAttr>(attr);
    int64_t global = getGlobalShape()[dim];
    int64_t last =
        extent.getStart().getMax(degrees) + extent.getSize().getMax(degrees);
    if (extent.getStart().getMin(degrees) < 0 || last > global)
      return emitOpError() << "box reaches element " << last << " of dimension "
                           << dim << ", which has " << global;
    oneSize &= extent.getSize().isConstant();
    boxElements *= extent.getSize().getMax(degrees);
  }
  if (getFlatAxes().has_value() != getFlatElements().has_value())
    return emitOpError("needs both flat axes and flat elements, or neither");
  int64_t held = boxElements;
  if (getFlatAxes()) {
    ArrayRef<int64_t> axes = *getFlatAxes();
    if (failed(verifyDistinctAxes(*this, axes)))
      return failure();
    int64_t ranks = 1;
    for (int64_t axis : axes)
      ranks *= degrees[axis];
    held = *getFlatElements();
    if (held * ranks < boxElements)
      return emitOpError() << "splits " << boxElements << " elements over "
                           << ranks << " ranks with " << held << " each";
  }
  if (oneSize && type.getNumElements() != held)
    return emitOpError() << "type has " << type.getNumElements()
                         << " elements, the rank holds " << held;
  if (static_cast<int64_t>(getBytes()) < type.getBytes())
    return emitOpError() << "has " << getBytes() << " bytes, its type "
                         << type.getBytes();
  if (getOffset() && *getOffset() % kAlignment != 0)
    return emitOpError() << "offset " << *getOffset() << " is no multiple of "
                         << kAlignment;
  if (getReplicaAxes())
    return verifyDistinctAxes(*this, *getReplicaAxes());
  return success();
}

LogicalResult SlotClassOp::verify() {
  int64_t bytes = getBytes(), count = getCount();
  if (bytes <= 0 || bytes % kAlignment != 0)
    return emitOpError() << "has slots of " << bytes
                         << " bytes, expected a positive multiple of "
                         << kAlignment;
  if (count < 1)
    return emitOpError() << "has " << count << " slots, expected at least one";
  if (getOffset() && *getOffset() % kAlignment != 0)
    return emitOpError() << "offset " << *getOffset() << " is no multiple of "
                         << kAlignment;
  return success();
}

LogicalResult LaneOp::verify() {
  if (getBytes() && *getBytes() % kAlignment != 0)
    return emitOpError() << "has " << *getBytes()
                         << " bytes, expected a multiple of " << kAlignment;
  if (getOffset() && *getOffset() % kAlignment != 0)
    return emitOpError() << "offset " << *getOffset() << " is no multiple of "
                         << kAlignment;
  if (getLogitsBytes() > getBytes().value_or(0))
    return emitOpError() << "has " << getLogitsBytes() << " bytes of logits in "
                         << getBytes().value_or(0);
  return success();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// Whether `stream` is one of the program's, or null; else an error.
static LogicalResult verifyStream(Operation *op, FlatSymbolRefAttr stream,
                                  const llvm::StringSet<> &streams) {
  if (stream && !streams.contains(stream.getValue()))
    return op->emitOpError() << "runs on stream " << stream
                             << ", which the program does not have";
  return success();
}

static llvm::StringSet<> streamNames(ProgramOp program) {
  llvm::StringSet<> names;
  for (auto stream : program.getBody()->getOps<StreamOp>())
    names.insert(stream.getSymName());
  return names;
}

LogicalResult FragmentOp::verifyRegions() {
  ProgramOp program = programOf(*this);
  llvm::StringSet<> streams = streamNames(program);
  if (failed(verifyStream(*this, getHomeAttr(), streams)))
    return failure();
  if (!isa_and_nonnull<LaneOp>(
          SymbolTable::lookupSymbolIn(program, getLaneAttr())))
    return emitOpError() << "uses lane " << getLaneAttr()
                         << ", which the program does not have";
  if (getSlotNames().size() != getSlotClasses().size())
    return emitOpError("needs one class for each slot");
  llvm::StringSet<> formals;
  for (auto [name, slotClass] : llvm::zip(getSlotNames(), getSlotClasses())) {
    if (!formals.insert(cast<StringAttr>(name).getValue()).second)
      return emitOpError() << "has two slots named " << name;
    if (!isa_and_nonnull<SlotClassOp>(SymbolTable::lookupSymbolIn(
            program, cast<FlatSymbolRefAttr>(slotClass))))
      return emitOpError() << "slot " << name << " is of class " << slotClass
                           << ", which the program does not have";
  }
  int64_t events = getEvents();
  llvm::DenseSet<int64_t> recorded;
  for (Operation &op : *getBody()) {
    if (!isa<InstructionOpInterface, RecordOp, WaitOp, StateRefOp, SlotRefOp,
             LaneRefOp, TempOp>(op))
      return op.emitOpError("does not belong in a fragment");
    if (auto instruction = dyn_cast<InstructionOpInterface>(op)) {
      if (failed(verifyStream(&op, instruction.getStreamAttr(), streams)))
        return failure();
    } else if (auto record = dyn_cast<RecordOp>(op)) {
      int64_t event = record.getEvent();
      if (failed(verifyStream(&op, record.getStreamAttr(), streams)))
        return failure();
      if (event < 0 || event >= events)
        return op.emitOpError()
               << "records event " << event << " of a fragment with " << events;
      if (!recorded.insert(event).second)
        return op.emitOpError() << "records event " << event << " again";
    } else if (auto wait = dyn_cast<WaitOp>(op)) {
      if (failed(verifyStream(&op, wait.getStreamAttr(), streams)))
        return failure();
      if (!recorded.contains(wait.getEvent()))
        return op.emitOpError() << "waits for event " << wait.getEvent()
                                << ", which nothing before it records";
    }
  }
  return success();
}

LogicalResult StateRefOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto state = resolve<StateOp>(*this, getStateAttr(), tables, "state");
  if (failed(state))
    return failure();
  auto type = cast<BufferType>(getBuffer().getType());
  ArrayRef<int64_t> degrees = programOf(*this).getMesh();
  int64_t end = getOffset().getMax(degrees) + type.getBytes();
  if (getOffset().getMin(degrees) < 0 ||
      end > static_cast<int64_t>(state->getBytes()))
    return emitOpError() << "reaches byte " << end << " of state "
                         << getStateAttr() << ", which has "
                         << state->getBytes();
  if (!getOffset().isMultipleOf(type.getElementBytes()))
    return emitOpError() << "offset is no multiple of the element's "
                         << type.getElementBytes() << " bytes";
  return success();
}

LogicalResult SlotRefOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto fragment = cast<FragmentOp>((*this)->getParentOp());
  FlatSymbolRefAttr slotClass = fragment.getSlotClass(getSlot());
  if (!slotClass)
    return emitOpError() << "refers to slot \"" << getSlot()
                         << "\", which the fragment does not have";
  auto found = resolve<SlotClassOp>(*this, slotClass, tables, "slot class");
  if (failed(found))
    return failure();
  int64_t offset = getOffset();
  int64_t end = offset + cast<BufferType>(getBuffer().getType()).getBytes();
  if (offset < 0 || end > static_cast<int64_t>(found->getBytes()))
    return emitOpError() << "reaches byte " << end << " of slot \"" << getSlot()
                         << "\", which has " << found->getBytes();
  if (offset % kAlignment != 0)
    return emitOpError() << "offset " << offset << " is no multiple of "
                         << kAlignment;
  return success();
}

LogicalResult LaneRefOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto fragment = cast<FragmentOp>((*this)->getParentOp());
  auto lane = resolve<LaneOp>(*this, fragment.getLaneAttr(), tables, "lane");
  if (failed(lane))
    return failure();
  int64_t offset = getOffset();
  int64_t end = offset + cast<BufferType>(getBuffer().getType()).getBytes();
  int64_t bytes = lane->getBytes().value_or(0);
  if (offset < 0 || end > bytes)
    return emitOpError() << "reaches byte " << end << " of lane "
                         << fragment.getLaneAttr() << ", which has " << bytes;
  if (offset % kAlignment != 0)
    return emitOpError() << "offset " << offset << " is no multiple of "
                         << kAlignment;
  return success();
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

static int64_t elements(Value buffer) {
  return cast<BufferType>(buffer.getType()).getNumElements();
}

LogicalResult LaunchOp::verify() {
  const KernelSignature *kernel = findKernel(getKernel());
  if (!kernel)
    return emitOpError() << "has no kernel \"" << getKernel() << "\"";
  auto count = [&](StringRef what, size_t got, unsigned least,
                   unsigned most) -> LogicalResult {
    if (got >= least && got <= most)
      return success();
    InFlightDiagnostic diag = emitOpError();
    diag << "kernel \"" << getKernel() << "\" takes " << least;
    if (most != least)
      diag << " or " << most;
    return diag << " " << what << ", got " << got;
  };
  if (failed(count("inputs", getIns().size(), kernel->ins, kernel->ins)) ||
      failed(count("outputs", getOuts().size(), kernel->outs,
                   kernel->outs + kernel->optionalOuts)) ||
      failed(
          count("arguments", getArgs().size(), kernel->args, kernel->args)) ||
      failed(
          count("numbers", getFloats().size(), kernel->floats, kernel->floats)))
    return failure();
  SmallVector<int64_t> ins = llvm::map_to_vector(getIns(), elements);
  SmallVector<int64_t> outs = llvm::map_to_vector(getOuts(), elements);
  SmallVector<int64_t> args;
  for (auto expr : getArgs().getAsRange<ExprAttr>())
    args.push_back(expr.getBase());
  std::string wrong = checkKernelSizes(*kernel, {ins, outs, args});
  if (!wrong.empty())
    return emitOpError() << "kernel \"" << getKernel() << "\": " << wrong;
  return success();
}

LogicalResult CopyOp::verify() {
  if (getIns().size() != 1 || getOuts().size() != 1)
    return emitOpError("copies exactly one buffer");
  int64_t from = cast<BufferType>(getIns()[0].getType()).getBytes();
  int64_t to = cast<BufferType>(getOuts()[0].getType()).getBytes();
  ExprAttr offset = getSourceOffsetAttr();
  if (!offset) {
    if (from != to)
      return emitOpError("copies between buffers of different sizes");
    return success();
  }
  ArrayRef<int64_t> degrees = programOf(*this).getMesh();
  if (!offset.getCases().empty())
    return emitOpError("has a source offset with cases, expected a sum");
  int64_t end = offset.getMax(degrees) + to;
  if (offset.getMin(degrees) < 0 || end > from)
    return emitOpError() << "copies up to byte " << end << " of a source of "
                         << from;
  return success();
}

/// Inputs and outputs pair up, with equal element types.
template <typename OpT> static LogicalResult verifyPairs(OpT op) {
  if (op.getIns().empty())
    return op.emitOpError("needs at least one buffer");
  if (op.getIns().size() != op.getOuts().size())
    return op.emitOpError() << "has " << op.getIns().size() << " inputs and "
                            << op.getOuts().size() << " outputs";
  for (auto [in, out] : llvm::zip(op.getIns(), op.getOuts()))
    if (cast<BufferType>(in.getType()).getElementType() !=
        cast<BufferType>(out.getType()).getElementType())
      return op.emitOpError("changes the element type");
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyPairs(*this)))
    return failure();
  for (auto [in, out] : llvm::zip(getIns(), getOuts()))
    if (in != out)
      return emitOpError("works in place: outputs must be the inputs");
  return success();
}

LogicalResult AllGatherOp::verify() { return verifyPairs(*this); }

LogicalResult ReduceScatterOp::verify() { return verifyPairs(*this); }

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &tables) {
  return resolve<GroupOp>(*this, getGroupAttr(), tables, "group");
}

/// Checks that every whole buffer holds one block for each of the group's
/// ranks.
template <typename OpT>
static LogicalResult verifyBlocks(OpT op, OperandRange blocks,
                                  OperandRange wholes,
                                  SymbolTableCollection &tables) {
  auto group = resolve<GroupOp>(op, op.getGroupAttr(), tables, "group");
  if (failed(group))
    return failure();
  int64_t ranks = 1;
  for (int64_t axis : group->getAxes())
    ranks *= programOf(op).getMesh()[axis];
  if (group->getFilters())
    return success(); // the size depends on the filters
  for (auto [block, whole] : llvm::zip(blocks, wholes))
    if (elements(block) * ranks != elements(whole))
      return op.emitOpError() << "has a block of " << elements(block)
                              << " elements and " << ranks << " ranks, but "
                              << elements(whole) << " elements in all";
  return success();
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyBlocks(*this, getIns(), getOuts(), tables);
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyBlocks(*this, getOuts(), getIns(), tables);
}

//===----------------------------------------------------------------------===//
// Action lists
//===----------------------------------------------------------------------===//

LogicalResult ActionsOp::verifyRegions() {
  ProgramOp program = programOf(*this);
  llvm::StringSet<> streams = streamNames(program);
  llvm::DenseSet<int64_t> recorded;
  int64_t events = getEvents();
  for (Operation &op : *getBody()) {
    auto action = dyn_cast<ActionOpInterface>(op);
    if (!action)
      return op.emitOpError("does not belong in an action list");
    if (failed(verifyStream(&op, action.getStreamAttr(), streams)))
      return failure();
    for (int64_t event : action.getRecords()) {
      if (event < 0 || event >= events)
        return op.emitOpError()
               << "records event " << event << " of a list with " << events;
      if (!recorded.insert(event).second)
        return op.emitOpError() << "records event " << event << " again";
    }
  }
  // A wait may precede the record: it then means the previous step's.
  for (auto action : getBody()->getOps<ActionOpInterface>())
    for (int64_t event : action.getWaits())
      if (!recorded.contains(event))
        return action.emitOpError()
               << "waits for event " << event << ", which nothing records";
  return success();
}

/// Bindings name existing slots.
static LogicalResult verifyBindings(ActionOpInterface action,
                                    SymbolTableCollection &tables) {
  for (auto binding : action.getBindings().getAsRange<BindingAttr>()) {
    auto slotClass = resolve<SlotClassOp>(action, binding.getSlotClass(),
                                          tables, "slot class");
    if (failed(slotClass))
      return failure();
    int64_t count = slotClass->getCount();
    if (binding.getIndex() < 0 || binding.getIndex() >= count)
      return action.emitOpError()
             << "binds slot " << binding.getIndex() << " of "
             << binding.getSlotClass() << ", which has " << count;
  }
  return success();
}

/// What moves fits into the slots bound.
static LogicalResult verifyMoves(ActionOpInterface action, ArrayAttr buffers,
                                 SymbolTableCollection &tables) {
  if (failed(verifyBindings(action, tables)))
    return failure();
  if (buffers.size() != action.getBindings().size())
    return action.emitOpError()
           << "moves " << buffers.size() << " buffers with "
           << action.getBindings().size() << " slots bound";
  for (auto [attr, binding] :
       llvm::zip(buffers, action.getBindings().getAsRange<BindingAttr>())) {
    auto type = dyn_cast<BufferType>(cast<TypeAttr>(attr).getValue());
    if (!type)
      return action.emitOpError("moves something that is no buffer");
    auto slotClass = resolve<SlotClassOp>(action, binding.getSlotClass(),
                                          tables, "slot class");
    if (failed(slotClass))
      return failure();
    if (type.getBytes() > static_cast<int64_t>(slotClass->getBytes()))
      return action.emitOpError() << "moves " << type.getBytes()
                                  << " bytes of slot " << binding.getSlotClass()
                                  << ", which has " << slotClass->getBytes();
  }
  return success();
}

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto fragment =
      resolve<FragmentOp>(*this, getFragmentAttr(), tables, "fragment");
  if (failed(fragment) || failed(verifyBindings(*this, tables)))
    return failure();
  if (getBindings().size() != fragment->getSlotClasses().size())
    return emitOpError() << "binds " << getBindings().size() << " slots, "
                         << getFragmentAttr() << " has "
                         << fragment->getSlotClasses().size();
  for (auto [binding, formal] : llvm::zip(
           getBindings().getAsRange<BindingAttr>(), fragment->getSlotClasses()))
    if (binding.getSlotClass() != formal)
      return emitOpError() << "binds a slot of " << binding.getSlotClass()
                           << " where " << getFragmentAttr() << " takes "
                           << formal;
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto channel = resolve<ChannelOp>(*this, getChannelAttr(), tables, "channel");
  if (failed(channel))
    return failure();
  if (channel->getSource() != programOf(*this).getStage())
    return emitOpError() << "sends on " << getChannelAttr()
                         << ", which starts at stage " << channel->getSource();
  return verifyMoves(*this, getBuffers(), tables);
}

LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto channel = resolve<ChannelOp>(*this, getChannelAttr(), tables, "channel");
  if (failed(channel))
    return failure();
  if (channel->getTarget() != programOf(*this).getStage())
    return emitOpError() << "receives on " << getChannelAttr()
                         << ", which ends at stage " << channel->getTarget();
  return verifyMoves(*this, getBuffers(), tables);
}

LogicalResult LoadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyMoves(*this, getBuffers(), tables);
}
