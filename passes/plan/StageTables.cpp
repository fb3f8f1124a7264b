//===- StageTables.cpp - a stage's tables, while its program is built -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/StageTables.h"

#include "passes/model/ActionList.h"
#include "passes/model/Layout.h"
#include "passes/plan/BufferClasses.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<int64_t>>
reckon::planir::meshDegrees(pipe::ProgramOp program) {
  auto config = program.getConfig();
  auto mesh = config ? config->getAs<DictionaryAttr>("mesh") : DictionaryAttr();
  if (!mesh)
    return program.emitOpError("needs config.mesh, the degree of each axis");
  SmallVector<int64_t> degrees;
  for (unsigned axis = 0; axis < kNumAxes; ++axis) {
    StringRef name = stringifyAxis(static_cast<Axis>(axis));
    auto degree = mesh.getAs<IntegerAttr>(name);
    if (!degree)
      return program.emitOpError()
             << "config.mesh lacks the degree of " << name;
    degrees.push_back(degree.getInt());
  }
  return degrees;
}

FailureOr<AxisList> reckon::planir::parseAxisNames(Operation *op,
                                                   ArrayAttr names) {
  AxisList axes;
  for (auto name : names.getAsRange<StringAttr>()) {
    auto axis = symbolizeAxis(name.getValue());
    if (!axis)
      return op->emitOpError()
             << "names axis " << name << ", expected tp, cp, ep, dp or pp";
    axes.push_back(*axis);
  }
  llvm::sort(axes);
  return axes;
}

static DenseI64ArrayAttr axesAttr(Builder &builder, ArrayRef<Axis> axes) {
  SmallVector<int64_t> numbers;
  for (Axis axis : axes)
    numbers.push_back(static_cast<int64_t>(axis));
  return builder.getDenseI64ArrayAttr(numbers);
}

/// "tp_ranks", "tp_dp_ranks"; all that cross stages end up as "world".
static std::string groupName(ArrayRef<Axis> axes) {
  if (llvm::is_contained(axes, Axis::pp))
    return "world";
  std::string name;
  for (Axis axis : axes)
    name += stringifyAxis(axis).str() + "_";
  return name + "ranks";
}

BufferType reckon::planir::bufferType(RankedTensorType type) {
  return BufferType::get(type.getContext(), type.getShape(),
                         type.getElementType());
}

std::string reckon::planir::channelName(pipe::Direction direction,
                                        int64_t source, int64_t target) {
  return (pipe::stringifyDirection(direction) + "_" + llvm::Twine(source) +
          "_" + llvm::Twine(target))
      .str();
}

//===----------------------------------------------------------------------===//
// Lookups
//===----------------------------------------------------------------------===//

int64_t StageTables::ranks(ArrayRef<Axis> axes) const {
  int64_t count = 1;
  for (Axis axis : axes)
    count *= degrees[static_cast<size_t>(axis)];
  return count;
}

FlatSymbolRefAttr StageTables::group(ArrayRef<Axis> axes) const {
  return FlatSymbolRefAttr::get(program->getContext(), groupName(axes));
}

const StageTables::Flat *StageTables::findFlat(train::StateOp state) const {
  StringRef parameter =
      state.getParameter() ? *state.getParameter() : state.getSymName();
  auto it = flats.find(parameter);
  return it == flats.end() ? nullptr : &it->second;
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

static InitAttr initAttr(Builder &builder, train::StateOp state) {
  auto make = [&](InitKind kind, ArrayRef<double> numbers = {}) {
    return InitAttr::get(builder.getContext(), kind,
                         builder.getDenseF64ArrayAttr(numbers));
  };
  auto init = state.getInit();
  if (!init) // accumulators and optimizer states
    return make(InitKind::zeros);
  StringRef kind = init->getAs<StringAttr>("kind").getValue();
  if (kind == "normal")
    return make(InitKind::normal,
                {init->getAs<FloatAttr>("stddev").getValueAsDouble()});
  if (kind == "rope")
    return make(InitKind::rope,
                init->getAs<DenseF64ArrayAttr>("rope").asArrayRef());
  return make(symbolizeInitKind(kind).value_or(InitKind::zeros));
}

LogicalResult StageTables::addState(OpBuilder &builder, train::StateOp state) {
  MLIRContext *context = builder.getContext();
  RankedTensorType type = state.getTensorType();
  ArrayRef<int64_t> global = type.getShape();
  if (auto shape = state.getGlobalShape())
    global = *shape;
  SmallVector<Attribute> box;
  for (auto [dim, size] : llvm::enumerate(global)) {
    AxisList axes;
    if (auto split = state.getBoxAxes()) {
      auto names = dim < split->size() ? dyn_cast<ArrayAttr>((*split)[dim])
                                       : ArrayAttr();
      if (!names)
        return state.emitOpError("needs box_axes for every dimension");
      auto parsed = parseAxisNames(state, names);
      if (failed(parsed))
        return failure();
      axes = *parsed;
    }
    if (size % ranks(axes) != 0)
      return state.emitOpError()
             << "dimension " << dim << " of " << size << " does not split over "
             << ranks(axes) << " ranks";
    int64_t part = size / ranks(axes);
    SmallVector<ExprTerm> terms;
    int64_t scale = part;
    for (Axis axis : axes) {
      int64_t degree = degrees[static_cast<size_t>(axis)];
      if (degree > 1)
        terms.push_back({axis, scale});
      scale *= degree;
    }
    box.push_back(ExtentAttr::get(
        context, ExprAttr::get(context, 0, terms, ArrayRef<ExprCase>()),
        ExprAttr::get(context, part)));
  }

  auto role = *symbolizeRole(static_cast<uint32_t>(state.getRole()));
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  int64_t bytes = type.getNumElements() * elementBytes;
  DenseI64ArrayAttr flatAxes, replicas;
  IntegerAttr flatElements;
  const Flat *flat = findFlat(state);
  if (flat && state.getFlatAxes() && !state.getFlatAxes()->empty()) {
    flatAxes = axesAttr(builder, flat->axes);
    flatElements = builder.getI64IntegerAttr(flat->elements);
  } else if (flat && (role == Role::parameter || role == Role::gradient)) {
    // Collectives work in place on the padded whole.
    bytes = flat->elements * flat->ranks * elementBytes;
  }
  if (auto names = state.getReplicaAxes()) {
    auto axes = parseAxisNames(state, *names);
    if (failed(axes))
      return failure();
    replicas = axesAttr(builder, *axes);
  }
  InitAttr init = initAttr(builder, state);
  if (role == Role::main_weight)
    if (train::StateOp parameter = findState(*state.getParameter()))
      init = initAttr(builder, parameter);
  StateOp::create(builder, state.getLoc(), state.getSymNameAttr(),
                  RoleAttr::get(context, role), TypeAttr::get(bufferType(type)),
                  builder.getDenseI64ArrayAttr(global),
                  builder.getArrayAttr(box), builder.getI64IntegerAttr(bytes),
                  IntegerAttr(), flatAxes, flatElements, replicas, init,
                  state.getDecay() ? builder.getUnitAttr() : UnitAttr(),
                  StringAttr());
  return success();
}

LogicalResult StageTables::addStates(OpBuilder &builder) {
  for (auto state : stage.getBody()->getOps<train::StateOp>()) {
    states[state.getSymName()] = state;
    if (!state.getFlatAxes() || !state.getParameter())
      continue;
    auto axes = parseAxisNames(state, *state.getFlatAxes());
    if (failed(axes))
      return failure();
    Flat flat{*axes, state.getTensorType().getNumElements(), ranks(*axes)};
    auto [it, fresh] = flats.try_emplace(*state.getParameter(), flat);
    if (!fresh &&
        (it->second.axes != flat.axes || it->second.elements != flat.elements))
      return state.emitOpError("is split unlike another state of the same "
                               "parameter");
  }
  for (auto state : stage.getBody()->getOps<train::StateOp>())
    if (failed(addState(builder, state)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Slots and channels
//===----------------------------------------------------------------------===//

LogicalResult StageTables::addSlots(OpBuilder &builder) {
  llvm::SmallDenseMap<unsigned, int64_t> bytes, counts;
  auto note = [&](StringRef role, Value value) -> LogicalResult {
    unsigned slotClass = static_cast<unsigned>(*pipe::slotClassOfRole(role));
    if (role == "saved")
      return success();
    auto type = bufferType(cast<RankedTensorType>(value.getType()));
    auto [it, fresh] = slotTypes.try_emplace(slotClass, type);
    if (!fresh && it->second != type)
      return stage.emitOpError() << "uses slots of " << role << " for "
                                 << it->second << " and " << type;
    bytes[slotClass] = type.getBytes();
    return success();
  };
  for (pipe::FragmentOp fragment : stage.getFragments()) {
    for (BlockArgument argument : fragment.getBody()->getArguments())
      if (failed(note(fragment.getArgumentRole(argument.getArgNumber()),
                      argument)))
        return failure();
    for (auto [number, value] :
         llvm::enumerate(fragment.getReturn().getValues())) {
      StringRef role = fragment.getResultRole(number);
      if (failed(note(role, value)))
        return failure();
      if (role != "saved")
        continue;
      int64_t &stash = bytes[static_cast<unsigned>(pipe::SlotClass::Stash)];
      savedOffsets.push_back(stash);
      stash += static_cast<int64_t>(model::alignUp(tensorBytes(value)));
    }
  }
  for (Operation &op : *stage.findActions().getBody())
    for (auto use :
         op.getAttrOfType<ArrayAttr>("uses").getAsRange<pipe::SlotUseAttr>()) {
      int64_t &count = counts[static_cast<unsigned>(use.getSlotClass())];
      count = std::max(count, use.getIndex() + 1);
    }
  for (unsigned number = 0; number < model::kNumSlotClasses; ++number) {
    if (bytes.lookup(number) == 0 || counts.lookup(number) == 0)
      continue;
    auto id = static_cast<model::SlotClassId>(number);
    SlotClassOp::create(builder, stage.getLoc(), model::slotClassName(id),
                        static_cast<int64_t>(model::alignUp(bytes[number])),
                        counts[number], IntegerAttr(),
                        model::slotClassCategory(id));
  }
  return success();
}

void StageTables::addChannels(OpBuilder &builder) {
  int64_t self = stage.getIndex();
  llvm::SmallDenseSet<int64_t> seen;
  SmallVector<std::tuple<int64_t, pipe::Direction, int64_t, int64_t>> list;
  for (Operation &op : *stage.findActions().getBody()) {
    if (auto send = dyn_cast<pipe::SendOp>(op))
      list.emplace_back(send.getChannel(), send.getDirection(), self,
                        send.getPeer());
    else if (auto recv = dyn_cast<pipe::RecvOp>(op))
      list.emplace_back(recv.getChannel(), recv.getDirection(), recv.getPeer(),
                        self);
  }
  llvm::sort(list);
  for (auto [id, direction, source, target] : list)
    if (seen.insert(id).second)
      ChannelOp::create(builder, stage.getLoc(),
                        channelName(direction, source, target), id,
                        *symbolizeDirection(static_cast<uint32_t>(direction)),
                        source, target);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

FailureOr<StageTables> StageTables::create(OpBuilder &builder,
                                           pipe::StageOp stage,
                                           ArrayRef<int64_t> degrees,
                                           ArrayRef<AxisList> groups) {
  pipe::ProgramOp parent = stage.getProgram();
  NamedAttrList config;
  if (auto given = parent.getConfig())
    config.append(given->getValue());
  auto number = [&](StringRef key, int64_t value) {
    config.set(key, builder.getI64IntegerAttr(value));
  };
  number("sequence_length", parent.getSequenceLength());
  number("micro_batch_size", parent.getMicroBatchSize());
  number("num_micro_batches", parent.getNumMicroBatches());
  number("global_batch_size", parent.getGlobalBatchSize());
  config.set("precision", parent.getPrecisionAttr());
  config.set("layers", stage.getLayersAttr());

  StageTables tables;
  tables.stage = stage;
  tables.degrees.assign(degrees.begin(), degrees.end());
  tables.program = ProgramOp::create(
      builder, stage.getLoc(), ("stage" + llvm::Twine(stage.getIndex())).str(),
      stage.getIndex(), builder.getDenseI64ArrayAttr(degrees), IntegerAttr(),
      config.getDictionary(builder.getContext()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(
      &tables.program.getBodyRegion().emplaceBlock());
  for (int stream = 0; stream < model::kNumStreams; ++stream)
    StreamOp::create(builder, stage.getLoc(), model::streamName(stream));
  for (const AxisList &axes : groups)
    GroupOp::create(builder, stage.getLoc(), groupName(axes),
                    axesAttr(builder, axes), ArrayAttr());
  tables.addChannels(builder);
  if (failed(tables.addStates(builder)) || failed(tables.addSlots(builder)))
    return failure();
  LaneOp::create(builder, stage.getLoc(), builder.getStringAttr("workspace"),
                 IntegerAttr(), IntegerAttr(), builder.getI64IntegerAttr(0));
  return tables;
}
