//===- TrainDialect.cpp - registration, structure accessors, names --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Train/Train.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace reckon::train;

#include "dialect/Train/TrainDialect.cpp.inc"
#include "dialect/Train/TrainEnums.cpp.inc"
#include "dialect/Train/TrainInterfaces.cpp.inc"

#define GET_OP_CLASSES
#include "dialect/Train/TrainOps.cpp.inc"

void TrainDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialect/Train/TrainOps.cpp.inc"
      >();
}

namespace reckon::train {

StateOp lookupState(Operation *from, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<StateOp>(from, name);
}

std::string stateName(llvm::StringRef parameter, StateRole role) {
  return (parameter + "#" + stringifyStateRole(role)).str();
}

int64_t elementCount(Value value) {
  return cast<RankedTensorType>(value.getType()).getNumElements();
}

} // namespace reckon::train

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

MicrobatchOp ProgramOp::getMicrobatch() {
  auto ops = getBody().getOps<MicrobatchOp>();
  return ops.empty() ? MicrobatchOp() : *ops.begin();
}

UpdateOp ProgramOp::getUpdate() {
  auto ops = getBody().getOps<UpdateOp>();
  return ops.empty() ? UpdateOp() : *ops.begin();
}

YieldOp LayerOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

YieldOp LayerGradOp::getYield() {
  return cast<YieldOp>(getBody().front().getTerminator());
}

//===----------------------------------------------------------------------===//
// Result names
//===----------------------------------------------------------------------===//

/// The last part of the innermost NameLoc: "layers.3.q" names a value %q.
static std::string nameOf(Location loc) {
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string name = nameOf(part); !name.empty())
        return name;
  auto named = dyn_cast<NameLoc>(loc);
  if (!named)
    return "";
  StringRef text = named.getName().getValue();
  return text.substr(text.rfind('.') + 1).str();
}

static void nameResults(Operation *op, OpAsmSetValueNameFn setName) {
  std::string name = nameOf(op->getLoc());
  if (name.empty())
    return;
  if (op->getNumResults() == 1)
    return setName(op->getResult(0), name);
  for (OpResult result : op->getResults())
    setName(result, name + "_" + std::to_string(result.getResultNumber()));
}

#define RECKON_NAME_RESULTS(OP)                                                \
  void OP::getAsmResultNames(OpAsmSetValueNameFn setName) {                    \
    nameResults(*this, setName);                                               \
  }
RECKON_NAME_RESULTS(EmbeddingOp)
RECKON_NAME_RESULTS(RmsNormOp)
RECKON_NAME_RESULTS(LinearOp)
RECKON_NAME_RESULTS(RopeOp)
RECKON_NAME_RESULTS(SwigluOp)
RECKON_NAME_RESULTS(AddOp)
RECKON_NAME_RESULTS(CrossEntropyMaxOp)
RECKON_NAME_RESULTS(CrossEntropySumOp)
RECKON_NAME_RESULTS(EmbeddingGradOp)
RECKON_NAME_RESULTS(RmsNormGradInputOp)
RECKON_NAME_RESULTS(RmsNormGradWeightOp)
RECKON_NAME_RESULTS(LinearGradInputOp)
RECKON_NAME_RESULTS(LinearGradWeightOp)
RECKON_NAME_RESULTS(CrossEntropyGradOp)
RECKON_NAME_RESULTS(AdamwOp)
#undef RECKON_NAME_RESULTS

void InputOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getValue(), stringifyInputKind(getKind()));
}

void ReadOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  StringRef name = getState();
  name.consume_back(".weight");
  bool gradient = name.consume_back(".weight#gradient");
  name = name.substr(name.rfind('.') + 1);
  setName(getValue(), (gradient ? "d_" + name : name).str());
}

void AttentionOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), "o");
  setName(getLse(), "lse");
}

void AttentionGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getDq(), "dq");
  setName(getDk(), "dk");
  setName(getDv(), "dv");
}

void SwigluGradOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getDgate(), "dgate");
  setName(getDup(), "dup");
}

void CrossEntropyLossOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getLse(), "lse");
}
