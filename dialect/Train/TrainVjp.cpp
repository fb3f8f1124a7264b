//===- TrainVjp.cpp - vector-Jacobian products ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Weight gradients are built before input gradients: the norm's input gradient
// may then take over the buffer of its cotangent.
//
//===----------------------------------------------------------------------===//

#include "dialect/Train/Train.h"

using namespace mlir;
using namespace reckon::train;

using Values = llvm::SmallVector<Value>;
using Lookup = llvm::function_ref<Value(Value)>;

/// Gradients of weights are accumulated in fp32 whatever the precision is.
static RankedTensorType weightGradType(Value weight) {
  return cast<RankedTensorType>(weight.getType())
      .clone(Float32Type::get(weight.getContext()));
}

/// "layers.3.q" becomes "layers.3.<prefix>q": the gradient of a value keeps
/// its name and its place in the YAML.
static Location gradLoc(Location loc, StringRef prefix) {
  auto named = dyn_cast<NameLoc>(loc);
  if (!named)
    return loc;
  StringRef text = named.getName().getValue();
  size_t cut = text.rfind('.') + 1;
  std::string name =
      (text.take_front(cut) + prefix + text.drop_front(cut)).str();
  return NameLoc::get(StringAttr::get(loc.getContext(), name),
                      named.getChildLoc());
}

//===----------------------------------------------------------------------===//
// Embedding, norm, linear
//===----------------------------------------------------------------------===//

Values EmbeddingOp::getSavedForBackward() { return {getTokens()}; }
Values EmbeddingOp::buildVjp(OpBuilder &b, Lookup lookup, ValueRange dy) {
  Value dw = EmbeddingGradOp::create(b, gradLoc(getLoc(), "dw_"),
                                     weightGradType(getWeight()), dy[0],
                                     lookup(getTokens()), getVocabAxesAttr());
  return {Value(), dw};
}

Values RmsNormOp::getSavedForBackward() { return {getX(), getWeight()}; }
Values RmsNormOp::buildVjp(OpBuilder &b, Lookup lookup, ValueRange dy) {
  Value x = lookup(getX());
  Value dw = RmsNormGradWeightOp::create(b, gradLoc(getLoc(), "dw_"),
                                         weightGradType(getWeight()), dy[0], x,
                                         getEpsAttr());
  Value dx = RmsNormGradInputOp::create(b, gradLoc(getLoc(), "dx_"),
                                        getX().getType(), dy[0], x,
                                        lookup(getWeight()), getEpsAttr());
  return {dx, dw};
}

Values LinearOp::getSavedForBackward() { return {getX(), getWeight()}; }
Values LinearOp::buildVjp(OpBuilder &b, Lookup lookup, ValueRange dy) {
  Value dw = LinearGradWeightOp::create(b, gradLoc(getLoc(), "dw_"),
                                        weightGradType(getWeight()), dy[0],
                                        lookup(getX()));
  Value dx =
      LinearGradInputOp::create(b, gradLoc(getLoc(), "dx_"), getX().getType(),
                                dy[0], lookup(getWeight()));
  return {dx, dw};
}

//===----------------------------------------------------------------------===//
// Attention and its rotation
//===----------------------------------------------------------------------===//

Values RopeOp::getSavedForBackward() { return {getTable()}; }
Values RopeOp::buildVjp(OpBuilder &b, Lookup lookup, ValueRange dy) {
  // A rotation is orthogonal: its transpose is the rotation back.
  auto back = RopeOp::create(b, gradLoc(getLoc(), "d_"), getX().getType(),
                             dy[0], lookup(getTable()), getHeadDimAttr(),
                             getSequenceLengthAttr(),
                             getInverse() ? UnitAttr() : b.getUnitAttr());
  return {back.getResult(), Value()};
}

Values AttentionOp::getSavedForBackward() {
  return {getQ(), getK(), getV(), getResult(), getLse()};
}
Values AttentionOp::buildVjp(OpBuilder &b, Lookup lookup, ValueRange dy) {
  auto grad = AttentionGradOp::create(
      b, gradLoc(getLoc(), "d_"),
      TypeRange{getQ().getType(), getK().getType(), getV().getType()}, dy[0],
      lookup(getQ()), lookup(getK()), lookup(getV()), lookup(getResult()),
      lookup(getLse()), getHeadDimAttr(), getSequenceLengthAttr());
  return {grad.getDq(), grad.getDk(), grad.getDv()};
}

//===----------------------------------------------------------------------===//
// Element-wise
//===----------------------------------------------------------------------===//

Values SwigluOp::getSavedForBackward() { return {getGate(), getUp()}; }
Values SwigluOp::buildVjp(OpBuilder &b, Lookup lookup, ValueRange dy) {
  auto grad = SwigluGradOp::create(
      b, gradLoc(getLoc(), "d_"),
      TypeRange{getGate().getType(), getUp().getType()}, dy[0],
      lookup(getGate()), lookup(getUp()));
  return {grad.getDgate(), grad.getDup()};
}

Values AddOp::getSavedForBackward() { return {}; }
Values AddOp::buildVjp(OpBuilder &, Lookup, ValueRange dy) {
  return {dy[0], dy[0]};
}

//===----------------------------------------------------------------------===//
// Loss
//===----------------------------------------------------------------------===//

Values CrossEntropyLossOp::getSavedForBackward() {
  return {getLogits(), getTargets(), getLse()};
}
Values CrossEntropyLossOp::buildVjp(OpBuilder &b, Lookup lookup, ValueRange) {
  Value dlogits = CrossEntropyGradOp::create(
      b, gradLoc(getLoc(), "d_"), getLogits().getType(), lookup(getLogits()),
      lookup(getTargets()), lookup(getLse()), getScaleAttr(),
      getVocabAxesAttr());
  return {dlogits, Value(), Value(), Value()};
}
