//===- DistVerifiers.cpp - mesh, sharding and collective rules ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dist/Dist.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reckon::dist;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Both ends of a transfer: static shapes, one element type.
LogicalResult verifyEnds(Operation *op, Value input, Value output) {
  for (Value value : {input, output})
    if (!typeOf(value).hasStaticShape())
      return op->emitOpError()
             << "needs static shapes, got " << value.getType();
  if (typeOf(input).getElementType() != typeOf(output).getElementType())
    return op->emitOpError() << "changes the element type: " << input.getType()
                             << " to " << output.getType();
  return success();
}

/// One list of axes per dimension of a value.
LogicalResult verifyFits(Operation *op, ShardingAttr sharding, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor ||
      static_cast<int64_t>(sharding.getDims().size()) != tensor.getRank())
    return op->emitOpError()
           << "sharding " << sharding << " does not fit " << type;
  return success();
}

/// The same operand count as results, a group of at least one rank, distinct
/// axes, static shapes, one element type from end to end.
template <typename Collective> LogicalResult verifyCommon(Collective op) {
  if (op.getInputs().empty() || op.getInputs().size() != op.getOutputs().size())
    return op.emitOpError() << "has " << op.getInputs().size()
                            << " operands and " << op.getOutputs().size()
                            << " results; both must be equal and at least 1";
  if (static_cast<int64_t>(op.getGroupSize()) < 1)
    return op.emitOpError()
           << "group_size must be positive, got " << op.getGroupSize();
  llvm::StringSet<> seen;
  for (Attribute axis : op.getAxes())
    if (!seen.insert(cast<StringAttr>(axis).getValue()).second)
      return op.emitOpError() << "names axis " << axis << " twice";
  for (auto [input, output] : llvm::zip(op.getInputs(), op.getOutputs()))
    if (failed(verifyEnds(op, input, output)))
      return failure();
  return success();
}

template <typename Collective> LogicalResult verifyReduction(Collective op) {
  if (op.getReduction() != "sum" && op.getReduction() != "max")
    return op.emitOpError()
           << "reduction must be sum or max, got " << op.getReductionAttr();
  return success();
}

/// `whole` cut into `group` parts along `dim` is `part`.
LogicalResult verifyCut(Operation *op, RankedTensorType whole,
                        RankedTensorType part, int64_t dim, int64_t group) {
  if (dim < 0 || dim >= whole.getRank())
    return op->emitOpError() << "dim " << dim << " is outside " << whole;
  llvm::SmallVector<int64_t> shape(whole.getShape());
  if (shape[dim] % group != 0)
    return op->emitOpError() << "dimension " << dim << " of " << whole
                             << " is not a multiple of group_size " << group;
  shape[dim] /= group;
  if (part.getShape() != ArrayRef<int64_t>(shape))
    return op->emitOpError()
           << "expects parts of "
           << RankedTensorType::get(shape, whole.getElementType()) << ", got "
           << part;
  return success();
}

/// Flat parts: one-dimensional, `whole` padded to `group` equal ones.
LogicalResult verifyFlat(Operation *op, RankedTensorType whole,
                         RankedTensorType part, int64_t group) {
  int64_t want = flatPart(whole.getNumElements(), group);
  if (part.getRank() != 1 || part.getDimSize(0) != want)
    return op->emitOpError()
           << "expects flat parts of " << want << " elements ("
           << whole.getNumElements() << " over " << group << "), got " << part;
  return success();
}

} // namespace

LogicalResult
ShardingAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     ArrayAttr dims, ArrayAttr unreduced, StringAttr reduction,
                     ArrayAttr flat, StringAttr) {
  llvm::StringSet<> seen;
  auto check = [&](ArrayAttr axes) -> LogicalResult {
    if (!axes)
      return success();
    for (Attribute axis : axes) {
      auto name = dyn_cast<StringAttr>(axis);
      if (!name)
        return emitError() << "axes must be strings, got " << axis;
      if (!seen.insert(name.getValue()).second)
        return emitError() << "axis " << name << " stands twice";
    }
    return success();
  };
  for (Attribute dim : dims) {
    auto axes = dyn_cast<ArrayAttr>(dim);
    if (!axes)
      return emitError() << "needs a list of axes per dimension, got " << dim;
    if (failed(check(axes)))
      return failure();
  }
  if (failed(check(unreduced)) || failed(check(flat)))
    return failure();
  if (reduction && reduction.getValue() != "sum" &&
      reduction.getValue() != "max")
    return emitError() << "reduction must be sum or max, got " << reduction;
  return success();
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  if (attr.getName() != shardingAttrName)
    return op->emitOpError() << "has an unknown attribute " << attr.getName();
  // A state is no value: its type is an attribute.
  if (auto sharding = dyn_cast<ShardingAttr>(attr.getValue())) {
    auto type = op->getInherentAttr("type");
    auto tensor = type ? dyn_cast_or_null<TypeAttr>(*type) : TypeAttr();
    if (!tensor)
      return op->emitOpError(
          "needs one sharding per result, in an array; only a state has one");
    return verifyFits(op, sharding, tensor.getValue());
  }
  auto shardings = dyn_cast<ArrayAttr>(attr.getValue());
  if (!shardings || !llvm::all_of(shardings, llvm::IsaPred<ShardingAttr>))
    return op->emitOpError()
           << attr.getName() << " must hold shardings, got " << attr.getValue();
  if (shardings.size() != op->getNumResults())
    return op->emitOpError() << "has " << shardings.size() << " shardings for "
                             << op->getNumResults() << " results";
  for (auto [sharding, type] : llvm::zip(shardings, op->getResultTypes()))
    if (failed(verifyFits(op, cast<ShardingAttr>(sharding), type)))
      return failure();
  return success();
}

LogicalResult MeshOp::verify() {
  if (getAxes().size() != getSizes().size())
    return emitOpError() << "has " << getAxes().size() << " axes and "
                         << getSizes().size() << " sizes";
  llvm::StringSet<> seen;
  for (auto [axis, size] : llvm::zip(getAxes(), getSizes())) {
    if (!seen.insert(cast<StringAttr>(axis).getValue()).second)
      return emitOpError() << "names axis " << axis << " twice";
    if (size < 1)
      return emitOpError() << "axis " << axis << " must have at least 1 rank, "
                           << "got " << size;
  }
  return success();
}

LogicalResult ReshardOp::verify() {
  if (getFrom().getDims().size() != getTo().getDims().size())
    return emitOpError() << "goes from " << getFrom().getDims().size()
                         << " dimensions to " << getTo().getDims().size();
  if (failed(verifyEnds(*this, getInput(), getResult())))
    return failure();
  std::pair<ShardingAttr, RankedTensorType> ends[] = {
      {getFrom(), getInput().getType()}, {getTo(), getResult().getType()}};
  for (auto [sharding, type] : ends) {
    bool flatPart = sharding.getFlat() && type.getRank() == 1;
    if (!flatPart && failed(verifyFits(*this, sharding, type)))
      return failure();
  }
  return success();
}

LogicalResult AllReduceOp::verify() {
  if (failed(verifyCommon(*this)) || failed(verifyReduction(*this)))
    return failure();
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs()))
    if (input.getType() != output.getType())
      return emitOpError() << "changes the type: " << input.getType() << " to "
                           << output.getType();
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyCommon(*this)) || failed(verifyReduction(*this)))
    return failure();
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs())) {
    LogicalResult cut =
        getDim()
            ? verifyCut(*this, typeOf(input), typeOf(output), *getDim(),
                        getGroupSize())
            : verifyFlat(*this, typeOf(input), typeOf(output), getGroupSize());
    if (failed(cut))
      return failure();
  }
  return success();
}

LogicalResult AllGatherOp::verify() {
  if (failed(verifyCommon(*this)))
    return failure();
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs())) {
    LogicalResult cut =
        getDim()
            ? verifyCut(*this, typeOf(output), typeOf(input), *getDim(),
                        getGroupSize())
            : verifyFlat(*this, typeOf(output), typeOf(input), getGroupSize());
    if (failed(cut))
      return failure();
  }
  return success();
}

LogicalResult SliceOp::verify() {
  if (failed(verifyCommon(*this)))
    return failure();
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs())) {
    LogicalResult cut =
        getDim() ? verifyCut(*this, typeOf(input), typeOf(output), *getDim(),
                             getGroupSize())
                 : verifyFlat(*this, typeOf(input), typeOf(output),
                              getGroupSize());
    if (failed(cut))
      return failure();
  }
  return success();
}

LogicalResult AllToAllOp::verify() {
  if (failed(verifyCommon(*this)))
    return failure();
  if (getSplitDim() == getConcatDim())
    return emitOpError("split and concat must be different dimensions");
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs())) {
    RankedTensorType type = typeOf(input);
    llvm::SmallVector<int64_t> shape(type.getShape());
    int64_t split = getSplitDim(), concat = getConcatDim();
    int64_t group = getGroupSize(), rank = type.getRank();
    if (split < 0 || concat < 0 || split >= rank || concat >= rank)
      return emitOpError() << "dimensions " << split << " and " << concat
                           << " must lie in " << type;
    if (shape[split] % group != 0)
      return emitOpError() << "dimension " << split << " of " << type
                           << " is not a multiple of group_size " << group;
    shape[split] /= group;
    shape[concat] *= group;
    if (typeOf(output).getShape() != ArrayRef<int64_t>(shape))
      return emitOpError() << "expects "
                           << RankedTensorType::get(shape,
                                                    type.getElementType())
                           << ", got " << output.getType();
  }
  return success();
}
