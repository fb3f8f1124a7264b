//===- DistDialect.cpp - registration and accessors -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon::dist;

#include "dialect/Dist/DistDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/Dist/DistAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/Dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/Dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialect/Dist/DistOps.cpp.inc"
      >();
}

int64_t MeshOp::getAxisSize(StringRef axis) {
  for (auto [name, size] : llvm::zip(getAxes(), getSizes()))
    if (cast<StringAttr>(name).getValue() == axis)
      return size;
  return 1;
}

StringRef MeshOp::getOrigin(StringRef axis) {
  if (auto origins = getOrigins())
    if (auto place = origins->getAs<StringAttr>(axis))
      return place.getValue();
  return "";
}

/// What a collective moves keeps its operand's name, with the kind behind it.
static void nameAll(Operation *op, StringRef suffix,
                    OpAsmSetValueNameFn setName) {
  auto named = dyn_cast<NameLoc>(op->getLoc());
  if (!named || op->getNumResults() != 1)
    return;
  StringRef text = named.getName().getValue();
  setName(op->getResult(0),
          (text.substr(text.rfind('.') + 1) + "_" + suffix).str());
}

void ReshardOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAll(*this, "reshard", setName);
}
void AllReduceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAll(*this, "all", setName);
}
void ReduceScatterOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAll(*this, "part", setName);
}
void AllGatherOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAll(*this, "whole", setName);
}
void SliceOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAll(*this, "slice", setName);
}
void AllToAllOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  nameAll(*this, "moved", setName);
}
