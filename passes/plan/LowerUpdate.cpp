//===- LowerUpdate.cpp - collectives and state updates of a fragment ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/LowerFragment.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

static ReductionAttr reductionAttr(MLIRContext *context, StringRef name) {
  return ReductionAttr::get(context, *symbolizeReduction(name));
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

LogicalResult FragmentLowering::allReduce(dist::AllReduceOp op) {
  auto axes = parseAxisNames(op, op.getAxes());
  if (failed(axes))
    return failure();
  if (!symbolizeReduction(op.getReduction()))
    return op.emitOpError()
           << "reduces by " << op.getReduction() << ", expected sum or max";
  SmallVector<Value> buffers;
  for (auto [in, out] : llvm::zip(op.getInputs(), op.getOutputs())) {
    if (classes.isState(out)) {
      placed[out] = place(in);
      if (StringAttr state = stateOf.lookup(in))
        stateOf[out] = state;
    } else if (place(out) != place(in)) {
      // The operand is still needed, or is not ours to overwrite.
      CopyOp::create(b, op.getLoc(), FlatSymbolRefAttr(), place(in), place(out),
                     ExprAttr(), locationName(op.getLoc()));
    }
    buffers.push_back(place(out));
  }
  if (tables.ranks(*axes) > 1)
    AllReduceOp::create(b, op.getLoc(),
                        reductionAttr(b.getContext(), op.getReduction()),
                        tables.group(*axes), FlatSymbolRefAttr(), buffers,
                        buffers, locationName(op.getLoc()));
  return success();
}

/// Whether blocks along `dim` are contiguous, or flat; else an error.
template <typename OpT> static LogicalResult checkContiguous(OpT op) {
  if (op.getDim().value_or(0) == 0)
    return success();
  return op.emitOpError()
         << "works along dimension " << *op.getDim()
         << ", expected 0 or a flat split: other blocks are not contiguous";
}

LogicalResult FragmentLowering::reduceScatter(dist::ReduceScatterOp op) {
  auto axes = parseAxisNames(op, op.getAxes());
  if (failed(axes) || failed(checkContiguous(op)))
    return failure();
  SmallVector<Value> ins, outs;
  for (auto [in, out] : llvm::zip(op.getInputs(), op.getOutputs())) {
    if (StringAttr state = stateOf.lookup(in)) {
      // In place: this rank's block of the padded whole.
      const StageTables::Flat *flat = tables.findFlat(tables.findState(state));
      if (op.getDim() || !flat || flat->axes != *axes)
        return op.emitOpError()
               << "expected a flat split of state \"" << state.getValue()
               << "\" over the axes of its optimizer states";
      ins.push_back(paddedState(state, *flat));
      placed[out] = stateBlock(state, *flat);
    } else {
      ins.push_back(place(in));
    }
    outs.push_back(place(out));
  }
  if (tables.ranks(*axes) > 1)
    ReduceScatterOp::create(b, op.getLoc(),
                            reductionAttr(b.getContext(), op.getReduction()),
                            tables.group(*axes), FlatSymbolRefAttr(), ins, outs,
                            locationName(op.getLoc()));
  return success();
}

LogicalResult FragmentLowering::allGather(dist::AllGatherOp op) {
  auto axes = parseAxisNames(op, op.getAxes());
  if (failed(axes) || failed(checkContiguous(op)))
    return failure();
  SmallVector<Value> ins, outs;
  for (auto [in, out] : llvm::zip(op.getInputs(), op.getOutputs())) {
    ins.push_back(place(in));
    if (StringAttr state = stateOf.lookup(in)) {
      const StageTables::Flat *flat = tables.findFlat(tables.findState(state));
      if (op.getDim() || !flat || flat->axes != *axes)
        return op.emitOpError()
               << "expected flat blocks of state \"" << state.getValue()
               << "\" over the axes of its optimizer states";
      outs.push_back(paddedState(state, *flat));
      placed[out] = wholeState(state);
      stateOf[out] = state;
    } else {
      outs.push_back(place(out));
    }
  }
  if (tables.ranks(*axes) > 1)
    AllGatherOp::create(b, op.getLoc(), tables.group(*axes),
                        FlatSymbolRefAttr(), ins, outs,
                        locationName(op.getLoc()));
  return success();
}

LogicalResult FragmentLowering::slice(dist::SliceOp op) {
  auto axes = parseAxisNames(op, op.getAxes());
  if (failed(axes) || failed(checkContiguous(op)))
    return failure();
  for (auto [in, out] : llvm::zip(op.getInputs(), op.getOutputs())) {
    if (StringAttr state = stateOf.lookup(in)) {
      const StageTables::Flat *flat = tables.findFlat(tables.findState(state));
      if (op.getDim() || !flat || flat->axes != *axes)
        return op.emitOpError()
               << "expected a flat split of state \"" << state.getValue()
               << "\" over the axes of its optimizer states";
      placed[out] = stateBlock(state, *flat);
      continue;
    }
    int64_t bytes = tensorBytes(out);
    SmallVector<ExprTerm> terms;
    for (Axis axis : *axes) {
      int64_t degree = tables.degrees[static_cast<size_t>(axis)];
      if (degree > 1)
        terms.push_back({axis, bytes});
      bytes *= degree;
    }
    CopyOp::create(
        b, op.getLoc(), FlatSymbolRefAttr(), place(in), place(out),
        ExprAttr::get(b.getContext(), 0, terms, ArrayRef<ExprCase>()),
        locationName(op.getLoc()));
  }
  return success();
}

LogicalResult FragmentLowering::lowerCollective(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](dist::AllReduceOp op) { return allReduce(op); })
      .Case([&](dist::ReduceScatterOp op) { return reduceScatter(op); })
      .Case([&](dist::AllGatherOp op) { return allGather(op); })
      .Case([&](dist::SliceOp op) { return slice(op); })
      .Default([](Operation *op) {
        return op->emitOpError("has no lowering to the plan level");
      });
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

LogicalResult FragmentLowering::write(train::WriteOp op) {
  Value target = wholeState(op.getState());
  Value source = place(op.getValue());
  if (source != target)
    CopyOp::create(b, op.getLoc(), FlatSymbolRefAttr(), source, target,
                   ExprAttr(), locationName(op.getLoc()));
  return success();
}

LogicalResult FragmentLowering::sumSquares(train::SumSquaresOp op) {
  Value metrics = wholeState(op.getMetrics());
  for (auto [number, value] : llvm::enumerate(op.getValues())) {
    ArrayAttr replicas;
    if (auto all = op.getReplicaAxes())
      replicas = dyn_cast<ArrayAttr>((*all)[number]);
    auto owner = ownerFlag(op, replicas);
    if (failed(owner))
      return failure();
    launch(op, "sum_squares", place(value), metrics, {*owner});
  }
  return success();
}

LogicalResult FragmentLowering::adamw(train::AdamwOp op) {
  StringRef parameter = op.getParameter();
  train::StateOp state = tables.findState(parameter);
  std::string main = train::stateName(parameter, train::StateRole::MainWeight);
  const StageTables::Flat *flat = tables.findFlat(state);
  Value updated = flat ? stateBlock(parameter, *flat) : wholeState(parameter);
  // Without separate main weights the parameter itself is updated.
  SmallVector<Value> outs;
  bool separate = tables.findState(main) != nullptr;
  outs.push_back(separate ? wholeState(main) : updated);
  for (train::StateRole role :
       {train::StateRole::Momentum, train::StateRole::Variance}) {
    std::string name = train::stateName(parameter, role);
    if (!tables.findState(name))
      return op.emitOpError() << "needs state \"" << name << "\"";
    outs.push_back(wholeState(name));
  }
  if (separate)
    outs.push_back(updated);
  launch(op, "adamw",
         {place(op.getGradient()), wholeState(op.getMetrics()),
          wholeState(op.getScalars())},
         outs, {},
         {op.getBeta1().convertToDouble(), op.getBeta2().convertToDouble(),
          op.getEps().convertToDouble(),
          op.getWeightDecay().convertToDouble()});
  placed[op.getResult()] = updated;
  stateOf[op.getResult()] = op.getParameterAttr().getAttr();
  return success();
}

LogicalResult FragmentLowering::lowerUpdate(Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](train::FillOp op) -> LogicalResult {
        launch(op, "fill_zero", {}, wholeState(op.getState()));
        return success();
      })
      .Case([&](train::WriteOp op) { return write(op); })
      .Case([&](train::SumSquaresOp op) { return sumSquares(op); })
      .Case([&](train::ClipFactorOp op) -> LogicalResult {
        launch(op, "clip_factor", {}, wholeState(op.getMetrics()), {},
               {op.getClip().convertToDouble()});
        return success();
      })
      .Case([&](train::AdamwOp op) { return adamw(op); })
      .Default([](Operation *op) { return op->emitOpError("is no update"); });
}
