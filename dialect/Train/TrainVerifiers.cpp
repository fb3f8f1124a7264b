//===- TrainVerifiers.cpp - one function per operation --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "dialect/Train/Train.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace reckon::train;

namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Each letter of the operation's sharding rule stands for one size; checks
/// ranks and sizes of all tensors against it. Letters in `free` may differ in
/// size between tensors (heads against columns, sequences against tokens).
LogicalResult verifyShapes(Operation *op, llvm::StringRef free = "") {
  ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
  llvm::SmallDenseMap<char, int64_t> sizes;
  auto check = [&](Value value, StringRef letters,
                   const Twine &what) -> LogicalResult {
    RankedTensorType type = typeOf(value);
    if (!type.hasStaticShape())
      return op->emitOpError() << what << " must have a static shape, got "
                               << type;
    if (type.getRank() != static_cast<int64_t>(letters.size()))
      return op->emitOpError()
             << what << " must have rank " << letters.size() << " (" << letters
             << "), got " << type;
    for (auto [letter, size] : llvm::zip(letters, type.getShape())) {
      if (letter == '.' || free.contains(letter))
        continue;
      auto [it, fresh] = sizes.try_emplace(letter, size);
      if (!fresh && it->second != size)
        return op->emitOpError()
               << what << " has " << size << " for dimension '" << letter
               << "' where another operand has " << it->second;
    }
    return success();
  };
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (failed(check(operand, rule.operands[i], "operand " + Twine(i))))
      return failure();
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    if (failed(check(result, rule.results[i], "result " + Twine(i))))
      return failure();
  return success();
}

LogicalResult verifyIds(Operation *op, Value ids, StringRef what) {
  if (!typeOf(ids).getElementType().isInteger(32))
    return op->emitOpError() << what << " must be i32, got " << ids.getType();
  return success();
}

LogicalResult verifyF32(Operation *op, Value value, StringRef what) {
  if (!typeOf(value).getElementType().isF32())
    return op->emitOpError() << what << " must be f32, got "
                             << value.getType();
  return success();
}

/// Columns must be whole heads.
LogicalResult verifyHeads(Operation *op, Value value, int64_t headDim,
                          StringRef what) {
  int64_t columns = typeOf(value).getDimSize(1);
  if (headDim <= 0 || columns % headDim != 0)
    return op->emitOpError() << what << " has " << columns
                             << " columns, not a multiple of head_dim "
                             << headDim;
  return success();
}

LogicalResult verifyRows(Operation *op, Value value, int64_t sequence) {
  int64_t rows = typeOf(value).getDimSize(0);
  if (sequence <= 0 || rows % sequence != 0)
    return op->emitOpError() << "has " << rows
                             << " rows, not a multiple of sequence_length "
                             << sequence;
  return success();
}

/// Checks the shapes and heads of attention and of its gradient.
LogicalResult verifyAttention(Operation *op, Value q, Value k, Value v,
                              Value lse, int64_t headDim, int64_t sequence) {
  // Sequences of lse share a letter with tokens, its heads with columns.
  if (failed(verifyShapes(op, "td")))
    return failure();
  if (typeOf(q).getDimSize(0) != typeOf(k).getDimSize(0))
    return op->emitOpError() << "query has " << typeOf(q).getDimSize(0)
                             << " rows, key " << typeOf(k).getDimSize(0);
  if (failed(verifyHeads(op, q, headDim, "query")) ||
      failed(verifyHeads(op, k, headDim, "key")) ||
      failed(verifyRows(op, q, sequence)))
    return failure();
  if (k.getType() != v.getType())
    return op->emitOpError() << "key and value differ: " << k.getType()
                             << " != " << v.getType();
  int64_t heads = typeOf(q).getDimSize(1) / headDim;
  int64_t kvHeads = typeOf(k).getDimSize(1) / headDim;
  if (kvHeads == 0 || heads % kvHeads != 0)
    return op->emitOpError() << kvHeads << " key-value heads do not divide "
                             << heads << " query heads";
  auto want = RankedTensorType::get(
      {typeOf(q).getDimSize(0) / sequence, heads, sequence},
      Float32Type::get(op->getContext()));
  if (lse.getType() != want)
    return op->emitOpError() << "log-sum-exp must be " << want << ", got "
                             << lse.getType();
  return success();
}

/// A symbol user: the state exists, and `value` (if any) has its type.
LogicalResult verifyState(Operation *op, SymbolTableCollection &tables,
                          FlatSymbolRefAttr name, Value value = nullptr) {
  auto state = tables.lookupNearestSymbolFrom<StateOp>(op, name);
  if (!state)
    return op->emitOpError() << "names no state: " << name;
  if (value && value.getType() != state.getType())
    return op->emitOpError() << "has " << value.getType() << ", but state "
                             << name << " is " << state.getType();
  return success();
}

} // namespace

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult ProgramOp::verifyRegions() {
  if (llvm::range_size(getBody().getOps<MicrobatchOp>()) != 1)
    return emitOpError("must hold exactly one train.microbatch");
  if (llvm::range_size(getBody().getOps<UpdateOp>()) > 1)
    return emitOpError("must hold at most one train.update");
  if (getNumMicroBatches() <= 0 ||
      getGlobalBatchSize() %
              (getNumMicroBatches() * getMicroBatchSize()) !=
          0)
    return emitOpError() << "global_batch " << getGlobalBatchSize()
                         << " is not a multiple of micro_batch "
                         << getMicroBatchSize() << " x micro_batches "
                         << getNumMicroBatches();
  return success();
}

LogicalResult StateOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError() << "must have a static tensor type, got "
                         << getType();
  bool owned = getRole() == StateRole::Gradient ||
               getRole() == StateRole::MainWeight ||
               getRole() == StateRole::Momentum ||
               getRole() == StateRole::Variance;
  if (owned != getParameter().has_value())
    return emitOpError() << (owned ? "must name its parameter with `of`"
                                   : "must not name a parameter");
  if (owned &&
      getSymName() != stateName(*getParameter(), getRole()))
    return emitOpError() << "must be called "
                         << stateName(*getParameter(), getRole());
  if (getDecay() && getRole() != StateRole::Parameter)
    return emitOpError("only parameters decay");
  if (auto init = getInit()) {
    auto kind = init->getAs<StringAttr>("kind");
    static const llvm::StringSet<> known = {"zeros", "ones", "normal", "rope"};
    if (!kind || !known.contains(kind.getValue()))
      return emitOpError(
          "init needs a kind: zeros, ones, normal or rope");
  }
  return success();
}

LogicalResult InputOp::verify() {
  if (failed(verifyIds(*this, getValue(), "value")))
    return failure();
  if (typeOf(getValue()).getRank() != 1)
    return emitOpError() << "must have rank 1, got " << getValue().getType();
  return success();
}

/// Block arguments are the inputs, yielded values the outputs.
template <typename LayerLike>
static LogicalResult verifyLayer(LayerLike op) {
  Block &body = op.getBody().front();
  if (TypeRange(body.getArguments()) != TypeRange(op.getInputs()))
    return op.emitOpError("block arguments differ from its inputs");
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield)
    return op.emitOpError("must end in train.yield");
  if (TypeRange(yield.getValues()) != TypeRange(op.getOutputs()))
    return op.emitOpError("yielded values differ from its outputs");
  return success();
}

LogicalResult LayerOp::verifyRegions() { return verifyLayer(*this); }
LogicalResult LayerGradOp::verifyRegions() { return verifyLayer(*this); }

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyState(*this, tables, getStateAttr(), getValue());
}
LogicalResult WriteOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyState(*this, tables, getStateAttr(), getValue());
}
LogicalResult FillOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyState(*this, tables, getStateAttr());
}
LogicalResult
CrossEntropyLossOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyState(*this, tables, getMetricsAttr());
}
LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifyState(*this, tables, getStateAttr(), getValue())))
    return failure();
  if (tables.lookupNearestSymbolFrom<StateOp>(*this, getStateAttr())
          .getRole() != StateRole::Gradient)
    return emitOpError() << "must name a gradient, got " << getStateAttr();
  return success();
}
LogicalResult SumSquaresOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (auto axes = getReplicaAxes())
    if (axes->size() != getValues().size())
      return emitOpError() << "has " << axes->size()
                           << " entries in replica_axes for "
                           << getValues().size() << " values";
  return verifyState(*this, tables, getMetricsAttr());
}
LogicalResult ClipFactorOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyState(*this, tables, getMetricsAttr());
}

LogicalResult AdamwOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifyState(*this, tables, getParameterAttr())) ||
      failed(verifyState(*this, tables, getMetricsAttr())) ||
      failed(verifyState(*this, tables, getScalarsAttr())))
    return failure();
  for (StateRole role : {StateRole::Momentum, StateRole::Variance}) {
    auto name = FlatSymbolRefAttr::get(getContext(),
                                       stateName(getParameter(), role));
    if (failed(verifyState(*this, tables, name)))
      return failure();
    auto state = tables.lookupNearestSymbolFrom<StateOp>(*this, name);
    if (state.getType() != getGradient().getType())
      return emitOpError() << "gradient is " << getGradient().getType()
                           << ", but state " << name << " is "
                           << state.getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Compute
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  return failed(verifyIds(*this, getTokens(), "token ids"))
             ? failure()
             : verifyShapes(*this);
}
LogicalResult RmsNormOp::verify() { return verifyShapes(*this); }
LogicalResult LinearOp::verify() { return verifyShapes(*this); }
LogicalResult SwigluOp::verify() { return verifyShapes(*this); }
LogicalResult AddOp::verify() { return verifyShapes(*this); }

LogicalResult RopeOp::verify() {
  if (failed(verifyShapes(*this)) ||
      failed(verifyHeads(*this, getX(), getHeadDim(), "operand")) ||
      failed(verifyRows(*this, getX(), getSequenceLength())))
    return failure();
  auto want = RankedTensorType::get({static_cast<int64_t>(getSequenceLength()),
                                     static_cast<int64_t>(getHeadDim())},
                                    Float32Type::get(getContext()));
  if (getTable().getType() != want)
    return emitOpError() << "table must be " << want << ", got "
                         << getTable().getType();
  return success();
}

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, getQ(), getK(), getV(), getLse(),
                         getHeadDim(), getSequenceLength());
}

LogicalResult AttentionGradOp::verify() {
  return verifyAttention(*this, getQ(), getK(), getV(), getLse(),
                         getHeadDim(), getSequenceLength());
}

LogicalResult CrossEntropyMaxOp::verify() {
  return failed(verifyF32(*this, getResult(), "maximum"))
             ? failure()
             : verifyShapes(*this);
}
LogicalResult CrossEntropySumOp::verify() {
  if (failed(verifyIds(*this, getTargets(), "targets")) ||
      failed(verifyF32(*this, getResult(), "sums")) ||
      failed(verifyShapes(*this)))
    return failure();
  if (typeOf(getResult()).getDimSize(0) != 2)
    return emitOpError() << "result must have 2 rows, got "
                         << getResult().getType();
  return success();
}
LogicalResult CrossEntropyLossOp::verify() {
  if (!(getScale().convertToDouble() > 0))
    return emitOpError("scale must be positive");
  return failed(verifyIds(*this, getTargets(), "targets"))
             ? failure()
             : verifyShapes(*this);
}
LogicalResult CrossEntropyGradOp::verify() {
  return failed(verifyIds(*this, getTargets(), "targets"))
             ? failure()
             : verifyShapes(*this);
}

LogicalResult EmbeddingGradOp::verify() {
  return failed(verifyF32(*this, getResult(), "weight gradient"))
             ? failure()
             : verifyShapes(*this);
}
LogicalResult RmsNormGradInputOp::verify() { return verifyShapes(*this); }
LogicalResult RmsNormGradWeightOp::verify() {
  return failed(verifyF32(*this, getResult(), "weight gradient"))
             ? failure()
             : verifyShapes(*this);
}
LogicalResult LinearGradInputOp::verify() { return verifyShapes(*this); }
LogicalResult LinearGradWeightOp::verify() {
  return failed(verifyF32(*this, getResult(), "weight gradient"))
             ? failure()
             : verifyShapes(*this);
}
LogicalResult SwigluGradOp::verify() { return verifyShapes(*this); }

LogicalResult AccumulateOp::verify() {
  return verifyF32(*this, getValue(), "accumulated gradient");
}
