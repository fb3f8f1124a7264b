//===- Sharding.cpp - shardings as values ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dist/Sharding.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace reckon::dist {
namespace {

Axes axesOf(ArrayAttr attr) {
  Axes axes;
  if (attr)
    for (Attribute axis : attr)
      axes.push_back(cast<StringAttr>(axis).str());
  return axes;
}

ArrayAttr axesAttr(MLIRContext *context, const Axes &axes) {
  llvm::SmallVector<StringRef> names(axes.begin(), axes.end());
  return Builder(context).getStrArrayAttr(names);
}

std::string braces(const Axes &axes) {
  return "{" + llvm::join(axes, ", ") + "}";
}

} // namespace

Sharding Sharding::of(ShardingAttr attr) {
  Sharding sharding;
  for (Attribute axes : attr.getDims())
    sharding.dims.push_back(axesOf(cast<ArrayAttr>(axes)));
  sharding.unreduced = axesOf(attr.getUnreduced());
  sharding.flat = axesOf(attr.getFlat());
  if (attr.getReduction())
    sharding.reduction = attr.getReduction().str();
  if (attr.getOrigin())
    sharding.origin = attr.getOrigin().str();
  return sharding;
}

ShardingAttr Sharding::attr(MLIRContext *context) const {
  llvm::SmallVector<Attribute> dimAttrs;
  for (const Axes &axes : dims)
    dimAttrs.push_back(axesAttr(context, axes));
  auto text = [&](const std::string &s) {
    return s.empty() ? StringAttr() : StringAttr::get(context, s);
  };
  auto list = [&](const Axes &axes) {
    return axes.empty() ? ArrayAttr() : axesAttr(context, axes);
  };
  return ShardingAttr::get(
      context, ArrayAttr::get(context, dimAttrs), list(unreduced),
      unreduced.empty() || reduction == "sum" ? StringAttr() : text(reduction),
      list(flat), text(origin));
}

bool Sharding::operator==(const Sharding &other) const {
  return dims == other.dims && unreduced == other.unreduced &&
         flat == other.flat &&
         (unreduced.empty() || reduction == other.reduction);
}

std::string Sharding::str() const {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + braces(dims[i]);
  text += "]";
  if (!unreduced.empty())
    text += " unreduced " + braces(unreduced);
  if (!flat.empty())
    text += " flat " + braces(flat);
  return text;
}

Sharding shardingOf(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *owner = argument.getOwner()->getParentOp();
    return shardingOf(owner->getOperand(argument.getArgNumber()));
  }
  auto result = cast<OpResult>(value);
  auto attr = result.getOwner()->getAttrOfType<ArrayAttr>(shardingAttrName);
  if (!attr)
    return Sharding::replicated(
        cast<RankedTensorType>(value.getType()).getRank());
  return Sharding::of(cast<ShardingAttr>(attr[result.getResultNumber()]));
}

void setShardings(Operation *op, llvm::ArrayRef<Sharding> shardings) {
  llvm::SmallVector<Attribute> attrs;
  for (const Sharding &sharding : shardings)
    attrs.push_back(sharding.attr(op->getContext()));
  op->setAttr(shardingAttrName, ArrayAttr::get(op->getContext(), attrs));
}

int64_t groupSize(MeshOp mesh, const Axes &axes) {
  int64_t size = 1;
  for (const std::string &axis : axes)
    size *= mesh.getAxisSize(axis);
  return size;
}

FailureOr<RankedTensorType> localType(Operation *op, RankedTensorType global,
                                      const Sharding &sharding, MeshOp mesh) {
  llvm::SmallVector<int64_t> shape(global.getShape());
  for (auto [i, axes] : llvm::enumerate(sharding.dims)) {
    int64_t parts = groupSize(mesh, axes);
    if (shape[i] % parts != 0) {
      InFlightDiagnostic error =
          op->emitError() << "dimension " << i << " of " << global << " has "
                          << shape[i] << " elements, which " << parts
                          << " ranks of " << braces(axes)
                          << " do not divide; choose another degree";
      if (!axes.empty() && !mesh.getOrigin(axes.front()).empty())
        error << " at " << mesh.getOrigin(axes.front());
      return error;
    }
    shape[i] /= parts;
  }
  if (!sharding.flat.empty()) {
    int64_t elements = 1;
    for (int64_t size : shape)
      elements *= size;
    shape = {flatPart(elements, groupSize(mesh, sharding.flat))};
  }
  return RankedTensorType::get(shape, global.getElementType());
}

} // namespace reckon::dist
