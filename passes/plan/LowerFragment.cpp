//===- LowerFragment.cpp - a fragment's values to buffers and launches ----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/LowerFragment.h"

#include "dialect/Plan/KernelTable.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

StringAttr reckon::planir::locationName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringAttr name = locationName(part))
        return name;
  return {};
}

static RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Value FragmentLowering::slotRef(StringRef slot, int64_t offset,
                                RankedTensorType type) {
  auto name = b.getStringAttr(slot);
  Value &ref = refs[{name, b.getI64IntegerAttr(offset)}];
  if (!ref)
    ref = SlotRefOp::create(b, fragment.getLoc(), bufferType(type), name,
                            b.getI64IntegerAttr(offset));
  return ref;
}

Value FragmentLowering::stateRef(StringRef name, ExprAttr offset,
                                 BufferType type) {
  auto symbol = FlatSymbolRefAttr::get(b.getContext(), name);
  auto key = b.getArrayAttr({offset, TypeAttr::get(type)});
  Value &ref = refs[{symbol, key}];
  if (!ref)
    ref = StateRefOp::create(b, fragment.getLoc(), type, symbol, offset);
  return ref;
}

Value FragmentLowering::wholeState(StringRef name) {
  return stateRef(name, constant(0),
                  bufferType(tables.findState(name).getTensorType()));
}

Value FragmentLowering::paddedState(StringRef name,
                                    const StageTables::Flat &flat) {
  Type element = tables.findState(name).getTensorType().getElementType();
  return stateRef(
      name, constant(0),
      BufferType::get(b.getContext(), {flat.elements * flat.ranks}, element));
}

Value FragmentLowering::stateBlock(StringRef name,
                                   const StageTables::Flat &flat) {
  auto type = tables.findState(name).getTensorType();
  int64_t bytes = flat.elements * (type.getElementTypeBitWidth() / 8);
  SmallVector<ExprTerm> terms;
  for (Axis axis : flat.axes) {
    int64_t degree = tables.degrees[static_cast<size_t>(axis)];
    if (degree > 1)
      terms.push_back({axis, bytes});
    bytes *= degree;
  }
  return stateRef(
      name, ExprAttr::get(b.getContext(), 0, terms, ArrayRef<ExprCase>()),
      BufferType::get(b.getContext(), {flat.elements}, type.getElementType()));
}

int64_t FragmentLowering::savedOffset(unsigned position, bool argument) {
  unsigned saved = 0;
  for (unsigned i = 0; i < position; ++i)
    saved += (argument ? fragment.getArgumentRole(i)
                       : fragment.getResultRole(i)) == "saved";
  return tables.savedOffsets[saved];
}

/// The buffer of a value, made when it is first needed.
Value FragmentLowering::place(Value value) {
  if (Value known = placed.lookup(value))
    return known;
  auto inSlot = [&](StringRef role, unsigned position, bool argument) {
    bool saved = role == "saved";
    return slotRef(saved ? "stash" : role,
                   saved ? savedOffset(position, argument) : 0,
                   tensorType(value));
  };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    unsigned number = argument.getArgNumber();
    return placed[value] =
               inSlot(fragment.getArgumentRole(number), number, true);
  }
  auto number = classes.lookup(value);
  assert(number && "a value of a state is placed where it is read");
  const BufferClasses::Buffer &buffer = classes[*number];
  Value &shared = classBuffers[*number];
  if (!shared) {
    if (buffer.returned >= 0)
      shared = inSlot(fragment.getResultRole(buffer.returned), buffer.returned,
                      false);
    else
      shared = TempOp::create(b, value.getLoc(), bufferType(tensorType(value)),
                              buffer.logits ? b.getUnitAttr() : UnitAttr());
  }
  // Values of one class may differ in shape, never in size.
  return placed[value] = shared;
}

//===----------------------------------------------------------------------===//
// Arguments that depend on coordinates
//===----------------------------------------------------------------------===//

FailureOr<ExprAttr> FragmentLowering::vocabOffset(Operation *op, int64_t rows) {
  SmallVector<ExprTerm> terms;
  if (auto names = op->getAttrOfType<ArrayAttr>("vocab_axes")) {
    auto axes = parseAxisNames(op, names);
    if (failed(axes))
      return failure();
    int64_t scale = rows;
    for (Axis axis : *axes) {
      int64_t degree = tables.degrees[static_cast<size_t>(axis)];
      if (degree > 1)
        terms.push_back({axis, scale});
      scale *= degree;
    }
  }
  return ExprAttr::get(b.getContext(), 0, terms, ArrayRef<ExprCase>());
}

FailureOr<ExprAttr> FragmentLowering::ownerFlag(Operation *op,
                                                ArrayAttr axisNames) {
  SmallVector<ExprCase> cases;
  if (axisNames) {
    auto axes = parseAxisNames(op, axisNames);
    if (failed(axes))
      return failure();
    for (Axis axis : *axes)
      if (tables.degrees[static_cast<size_t>(axis)] > 1)
        cases.push_back({axis, /*differs=*/true, 0, 0});
  }
  return ExprAttr::get(b.getContext(), 1, ArrayRef<ExprTerm>(), cases);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void FragmentLowering::launch(Operation *op, StringRef kernel, ValueRange ins,
                              ValueRange outs, ArrayRef<ExprAttr> args,
                              ArrayRef<double> floats) {
  auto elements = [](Value value) {
    return cast<BufferType>(value.getType()).getNumElements();
  };
  SmallVector<int64_t> inSizes = llvm::map_to_vector(ins, elements);
  SmallVector<int64_t> outSizes = llvm::map_to_vector(outs, elements);
  SmallVector<int64_t> bases;
  SmallVector<Attribute> exprs;
  for (ExprAttr arg : args) {
    bases.push_back(arg.getBase());
    exprs.push_back(arg);
  }
  int64_t flops = kernelFlops(*findKernel(kernel), {inSizes, outSizes, bases});
  LaunchOp::create(b, op->getLoc(), b.getStringAttr(kernel),
                   FlatSymbolRefAttr(), ins, outs, b.getArrayAttr(exprs),
                   b.getDenseF64ArrayAttr(floats), b.getI64IntegerAttr(flops),
                   locationName(op->getLoc()));
}

void FragmentLowering::linearFp8(train::LinearFp8Op op, Value out,
                                 ExprAttr acc) {
  auto type = tensorType(op.getResult());
  launch(op, "linear_fp8",
         {place(op.getA()), place(op.getAScale()), place(op.getB()),
          place(op.getBScale())},
         out,
         {constant(type.getDimSize(0)), constant(type.getDimSize(1)),
          constant(op.getK()), acc});
}

LogicalResult FragmentLowering::lowerAccumulate(train::AccumulateOp op) {
  Operation *producer = op.getValue().getDefiningOp();
  // The first micro-batch overwrites, unless this fragment added already.
  bool first = fragment.getFirstMicroBatch() &&
               accumulated.insert(op.getStateAttr()).second;
  ExprAttr acc = constant(first ? 0 : 1);
  Value out = wholeState(op.getState());
  return llvm::TypeSwitch<Operation *, LogicalResult>(producer)
      .Case<train::LinearGradWeightOp>([&](auto grad) -> LogicalResult {
        auto type = tensorType(grad.getResult());
        launch(
            grad, "linear_grad_weight",
            {place(grad.getDy()), place(grad.getX())}, out,
            {constant(type.getDimSize(0)), constant(type.getDimSize(1)), acc});
        return success();
      })
      .Case<train::LinearFp8Op>([&](auto grad) -> LogicalResult {
        linearFp8(grad, out, acc);
        return success();
      })
      .Case<train::RmsNormGradWeightOp>([&](auto grad) -> LogicalResult {
        launch(grad, "rms_norm_grad_weight",
               {place(grad.getDy()), place(grad.getX())}, out,
               {constant(tensorType(grad.getX()).getDimSize(1)), acc},
               {grad.getEps().convertToDouble()});
        return success();
      })
      .Case<train::EmbeddingGradOp>([&](auto grad) -> LogicalResult {
        auto type = tensorType(grad.getResult());
        auto offset = vocabOffset(grad, type.getDimSize(0));
        if (failed(offset))
          return failure();
        launch(grad, "embedding_grad",
               {place(grad.getDy()), place(grad.getTokens())}, out,
               {constant(type.getDimSize(0)), constant(type.getDimSize(1)),
                *offset, acc});
        return success();
      });
}

LogicalResult FragmentLowering::lowerCompute(Operation *op) {
  using namespace train;
  auto columns = [](Value value) { return tensorType(value).getDimSize(1); };
  auto heads = [&](auto op, Value value) {
    return constant(columns(value) / static_cast<int64_t>(op.getHeadDim()));
  };
  // The vocabulary's part on this rank, all of whose columns are words, and
  // its first column.
  auto vocabulary = [&](Operation *op, Value logits,
                        function_ref<void(ExprAttr, ExprAttr)> emit) {
    auto offset = vocabOffset(op, columns(logits));
    if (failed(offset))
      return failure();
    emit(constant(columns(logits)), *offset);
    return success();
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](EmbeddingOp op) -> LogicalResult {
        auto weight = tensorType(op.getWeight());
        auto offset = vocabOffset(op, weight.getDimSize(0));
        if (failed(offset))
          return failure();
        launch(op, "embedding", {place(op.getTokens()), place(op.getWeight())},
               place(op.getResult()),
               {constant(weight.getDimSize(0)), constant(weight.getDimSize(1)),
                *offset});
        return success();
      })
      .Case([&](RmsNormOp op) -> LogicalResult {
        launch(op, "rms_norm", {place(op.getX()), place(op.getWeight())},
               place(op.getResult()), {constant(columns(op.getX()))},
               {op.getEps().convertToDouble()});
        return success();
      })
      .Case([&](RmsNormGradInputOp op) -> LogicalResult {
        launch(op, "rms_norm_grad_input",
               {place(op.getDy()), place(op.getX()), place(op.getWeight())},
               place(op.getResult()), {constant(columns(op.getX()))},
               {op.getEps().convertToDouble()});
        return success();
      })
      .Case([&](LinearOp op) -> LogicalResult {
        auto weight = tensorType(op.getWeight());
        launch(
            op, "linear", {place(op.getX()), place(op.getWeight())},
            place(op.getResult()),
            {constant(weight.getDimSize(0)), constant(weight.getDimSize(1))});
        return success();
      })
      .Case([&](LinearGradInputOp op) -> LogicalResult {
        auto weight = tensorType(op.getWeight());
        launch(
            op, "linear_grad_input", {place(op.getDy()), place(op.getWeight())},
            place(op.getResult()),
            {constant(weight.getDimSize(0)), constant(weight.getDimSize(1))});
        return success();
      })
      .Case([&](AmaxOp op) -> LogicalResult {
        launch(op, "amax", place(op.getX()), place(op.getResult()));
        return success();
      })
      .Case([&](CastFp8Op op) -> LogicalResult {
        SmallVector<Value> outs = llvm::map_to_vector(
            op.getResults(), [&](Value value) { return place(value); });
        bool e5m2 = isa<Float8E5M2Type>(
            tensorType(op.getCodes().front()).getElementType());
        launch(op, "cast_fp8", {place(op.getX()), place(op.getAmax())}, outs,
               {constant(tensorType(op.getX()).getDimSize(0)),
                constant(columns(op.getX())), constant(e5m2 ? 1 : 0),
                constant((op.getStraight() ? 1 : 0) +
                         (op.getTransposed() ? 2 : 0))});
        return success();
      })
      .Case([&](LinearFp8Op op) -> LogicalResult {
        linearFp8(op, place(op.getResult()), constant(0));
        return success();
      })
      .Case([&](RopeOp op) -> LogicalResult {
        launch(op, "rope", {place(op.getX()), place(op.getTable())},
               place(op.getResult()),
               {heads(op, op.getX()), constant(op.getHeadDim()),
                constant(op.getSequenceLength()),
                constant(op.getInverse() ? 1 : 0)});
        return success();
      })
      .Case([&](AttentionOp op) -> LogicalResult {
        launch(op, "attention",
               {place(op.getQ()), place(op.getK()), place(op.getV())},
               {place(op.getResult()), place(op.getLse())},
               {heads(op, op.getQ()), heads(op, op.getK()),
                constant(op.getHeadDim()), constant(op.getSequenceLength())});
        return success();
      })
      .Case([&](AttentionGradOp op) -> LogicalResult {
        Value dq = place(op.getDq()), dk = place(op.getDk()),
              dv = place(op.getDv());
        // Row sums of dy * o, live only here; after the results.
        Value delta = TempOp::create(
            b, op.getLoc(), bufferType(tensorType(op.getLse())), UnitAttr());
        launch(op, "attention_grad",
               {place(op.getDy()), place(op.getQ()), place(op.getK()),
                place(op.getV()), place(op.getO()), place(op.getLse())},
               {dq, dk, dv, delta},
               {heads(op, op.getQ()), heads(op, op.getK()),
                constant(op.getHeadDim()), constant(op.getSequenceLength())});
        return success();
      })
      .Case([&](SwigluOp op) -> LogicalResult {
        launch(op, "swiglu", {place(op.getGate()), place(op.getUp())},
               place(op.getResult()), {constant(columns(op.getGate()))});
        return success();
      })
      .Case([&](SwigluGradOp op) -> LogicalResult {
        launch(op, "swiglu_grad",
               {place(op.getDy()), place(op.getGate()), place(op.getUp())},
               {place(op.getDgate()), place(op.getDup())},
               {constant(columns(op.getGate()))});
        return success();
      })
      .Case([&](AddOp op) -> LogicalResult {
        launch(op, "add", {place(op.getLhs()), place(op.getRhs())},
               place(op.getResult()));
        return success();
      })
      .Case([&](CrossEntropyMaxOp op) -> LogicalResult {
        ExprAttr width = constant(columns(op.getLogits()));
        launch(op, "cross_entropy_max", place(op.getLogits()),
               place(op.getResult()), {width, width});
        return success();
      })
      .Case([&](CrossEntropySumOp op) -> LogicalResult {
        return vocabulary(
            op, op.getLogits(), [&](ExprAttr width, ExprAttr offset) {
              launch(op, "cross_entropy_sum",
                     {place(op.getLogits()), place(op.getTargets()),
                      place(op.getMax())},
                     place(op.getResult()), {width, width, offset});
            });
      })
      .Case([&](CrossEntropyLossOp op) -> LogicalResult {
        auto owner = ownerFlag(op, op.getVocabAxesAttr());
        if (failed(owner))
          return failure();
        launch(op, "cross_entropy_loss",
               {place(op.getSums()), place(op.getMax())},
               {place(op.getLse()), wholeState(op.getMetrics())}, {*owner});
        return success();
      })
      .Case([&](CrossEntropyGradOp op) -> LogicalResult {
        return vocabulary(
            op, op.getLogits(), [&](ExprAttr width, ExprAttr offset) {
              launch(op, "cross_entropy_grad",
                     {place(op.getLogits()), place(op.getTargets()),
                      place(op.getLse())},
                     place(op.getResult()), {width, width, offset},
                     {op.getScale().convertToDouble()});
            });
      })
      .Default([](Operation *op) -> LogicalResult {
        return op->emitOpError("has no kernel at the plan level");
      });
}

LogicalResult FragmentLowering::lowerOp(Operation *op) {
  if (auto read = dyn_cast<train::ReadOp>(op)) {
    placed[read.getValue()] = wholeState(read.getState());
    stateOf[read.getValue()] = read.getStateAttr().getAttr();
    return success();
  }
  // The fused kernel stands where the gradient is computed: behind it a kernel
  // that works in place may overwrite what it reads.
  if (train::AccumulateOp accumulate = fusedAccumulate(op))
    return lowerAccumulate(accumulate);
  if (auto accumulate = dyn_cast<train::AccumulateOp>(op)) {
    Operation *producer = accumulate.getValue().getDefiningOp();
    if (producer && fusedAccumulate(producer) == accumulate)
      return success();
    return op->emitOpError(
        "expected a weight gradient that nothing else uses, so that its kernel "
        "can add to the state");
  }
  if (op->getDialect()->getNamespace() == "dist")
    return lowerCollective(op);
  if (isa<train::FillOp, train::WriteOp, train::SumSquaresOp,
          train::ClipFactorOp, train::AdamwOp>(op))
    return lowerUpdate(op);
  return lowerCompute(op);
}

LogicalResult FragmentLowering::lower() {
  SmallVector<StringRef> names;
  SmallVector<Attribute> slots;
  for (pipe::SlotClass slotClass : fragment.getSlotClasses()) {
    names.push_back(pipe::stringifySlotClass(slotClass));
    slots.push_back(FlatSymbolRefAttr::get(b.getContext(), names.back()));
  }
  OpBuilder::InsertionGuard guard(b);
  result = FragmentOp::create(
      b, fragment.getLoc(), fragment.getSymNameAttr(), FlatSymbolRefAttr(),
      FlatSymbolRefAttr::get(b.getContext(), "workspace"),
      b.getStrArrayAttr(names), b.getArrayAttr(slots), b.getI64IntegerAttr(0));
  b.setInsertionPointToEnd(&result.getBodyRegion().emplaceBlock());
  for (Operation &op : fragment.getBody()->without_terminator())
    if (failed(lowerOp(&op)))
      return failure();
  // A state that is only updated through its blocks was read as a whole.
  for (Operation &op : llvm::make_early_inc_range(*result.getBody()))
    if (op.getNumResults() == 1 && op.use_empty())
      op.erase();
  return success();
}
