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
      return op->emitOpError()
             << what << " must have a static shape, got " << type;
    if (type.getRank() != static_cast<int64_t>(letters.size()))
      return op->emitOpError() << what << " must have rank " << letters.size()
                               << " (" << letters << "), got " << type;
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

/// Activations and weights of one operation share a precision.
LogicalResult verifyPrecision(Operation *op, ValueRange values) {
  Type want = typeOf(values.front()).getElementType();
  if (!want.isF32() && !want.isBF16())
    return op->emitOpError()
           << "computes in f32 or bf16, got " << values.front().getType();
  for (Value value : values)
    if (typeOf(value).getElementType() != want)
      return op->emitOpError()
             << "mixes precisions: " << values.front().getType() << " and "
             << value.getType();
  return success();
}

/// `verifyShapes`, and all of `values` in one precision.
LogicalResult verifyCompute(Operation *op, ValueRange values) {
  return failed(verifyShapes(op)) ? failure() : verifyPrecision(op, values);
}

LogicalResult verifyIds(Operation *op, Value ids, StringRef what) {
  if (!typeOf(ids).getElementType().isInteger(32))
    return op->emitOpError() << what << " must be i32, got " << ids.getType();
  return success();
}

LogicalResult verifyF32(Operation *op, Value value, StringRef what) {
  if (!typeOf(value).getElementType().isF32())
    return op->emitOpError() << what << " must be f32, got " << value.getType();
  return success();
}

/// Columns must be whole heads.
LogicalResult verifyHeads(Operation *op, Value value, int64_t headDim,
                          StringRef what) {
  int64_t columns = typeOf(value).getDimSize(1);
  if (headDim <= 0 || columns % headDim != 0)
    return op->emitOpError()
           << what << " has " << columns
           << " columns, not a multiple of head_dim " << headDim;
  return success();
}

LogicalResult verifyRows(Operation *op, Value value, int64_t sequence) {
  int64_t rows = typeOf(value).getDimSize(0);
  if (sequence <= 0 || rows % sequence != 0)
    return op->emitOpError()
           << "has " << rows << " rows, not a multiple of sequence_length "
           << sequence;
  return success();
}

LogicalResult verifySameType(Operation *op, Value value, StringRef what,
                             Value like, StringRef likeWhat) {
  if (value.getType() != like.getType())
    return op->emitOpError()
           << what << " must have the type of " << likeWhat << ", "
           << like.getType() << ", got " << value.getType();
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
  if (failed(verifySameType(op, v, "value", k, "the key")) ||
      failed(verifyPrecision(op, {q, k})))
    return failure();
  int64_t heads = typeOf(q).getDimSize(1) / headDim;
  int64_t kvHeads = typeOf(k).getDimSize(1) / headDim;
  if (kvHeads == 0 || heads % kvHeads != 0)
    return op->emitOpError() << kvHeads << " key-value heads do not divide "
                             << heads << " query heads";
  auto want = RankedTensorType::get(
      {typeOf(q).getDimSize(0) / sequence, heads, sequence},
      Float32Type::get(op->getContext()));
  if (lse.getType() != want)
    return op->emitOpError()
           << "log-sum-exp must be " << want << ", got " << lse.getType();
  return success();
}

/// A list of axis names.
bool isAxisList(Attribute attr) {
  auto axes = dyn_cast<ArrayAttr>(attr);
  return axes && llvm::all_of(axes, llvm::IsaPred<StringAttr>);
}

/// What makes a state's first values: its kind and the numbers of that kind.
LogicalResult verifyInit(Operation *op, DictionaryAttr init) {
  auto kind = init.getAs<StringAttr>("kind");
  static const llvm::StringSet<> known = {"zeros", "ones", "normal", "rope"};
  if (!kind || !known.contains(kind.getValue()))
    return op->emitOpError("init needs a kind: zeros, ones, normal or rope");
  if (kind == "normal" && !init.getAs<FloatAttr>("stddev"))
    return op->emitOpError("init normal needs the number stddev");
  auto rope = init.getAs<DenseF64ArrayAttr>("rope");
  if (kind == "rope" && (!rope || rope.size() != 5))
    return op->emitOpError("init rope needs 5 numbers: theta, factor, low and "
                           "high frequency factor, original positions");
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

/// A symbol user: the state exists and has this role.
LogicalResult verifyRole(Operation *op, SymbolTableCollection &tables,
                         FlatSymbolRefAttr name, StateRole role) {
  if (failed(verifyState(op, tables, name)))
    return failure();
  StateRole got = tables.lookupNearestSymbolFrom<StateOp>(op, name).getRole();
  if (got != role)
    return op->emitOpError()
           << "must name a state of role " << stringifyStateRole(role)
           << ", but " << name << " has role " << stringifyStateRole(got);
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
  std::pair<StringRef, int64_t> numbers[] = {
      {"sequence", getSequenceLength()},
      {"micro_batch", getMicroBatchSize()},
      {"micro_batches", getNumMicroBatches()},
      {"global_batch", getGlobalBatchSize()}};
  for (auto [name, number] : numbers)
    if (number < 1)
      return emitOpError() << name << " must be at least 1, got " << number;
  if (getGlobalBatchSize() % getNumMicroBatches() != 0 ||
      getGlobalBatchSize() / getNumMicroBatches() % getMicroBatchSize() != 0)
    return emitOpError() << "global_batch " << getGlobalBatchSize()
                         << " is not a multiple of micro_batch "
                         << getMicroBatchSize() << " x micro_batches "
                         << getNumMicroBatches();
  return success();
}

LogicalResult StateOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError() << "must have a static tensor type, got " << getType();
  StateRole role = getRole();
  bool owned = role == StateRole::Gradient || role == StateRole::MainWeight ||
               role == StateRole::Momentum || role == StateRole::Variance;
  if (owned != getParameter().has_value())
    return emitOpError() << (owned ? "must name its parameter with `of`"
                                   : "must not name a parameter");
  if (owned && getSymName() != stateName(*getParameter(), role))
    return emitOpError() << "must be called "
                         << stateName(*getParameter(), role);
  if (getDecay() && role != StateRole::Parameter)
    return emitOpError("only parameters decay");
  // The step loop reads and writes these two by position.
  bool metrics = role == StateRole::Metrics;
  if (metrics || role == StateRole::Scalars) {
    auto want = RankedTensorType::get({metrics ? 4 : 8},
                                      Float64Type::get(getContext()));
    if (type != want)
      return emitOpError() << "of role " << stringifyStateRole(role)
                           << " must be " << want << ", got " << type;
  }
  if (auto dim = getTensorParallelDim())
    if (static_cast<int64_t>(*dim) < 0 ||
        static_cast<int64_t>(*dim) >= type.getRank())
      return emitOpError() << "tensor_parallel_dim "
                           << static_cast<int64_t>(*dim) << " is outside "
                           << type;
  if (getGlobalShape().has_value() != getBoxAxes().has_value())
    return emitOpError("needs global_shape and box_axes together");
  if (auto box = getBoxAxes())
    if (box->size() != getGlobalShape()->size() ||
        !llvm::all_of(*box, isAxisList))
      return emitOpError() << "box_axes must be a list of axis names for each "
                              "of the "
                           << getGlobalShape()->size() << " dimensions, got "
                           << *box;
  return getInit() ? verifyInit(*this, *getInit()) : success();
}

LogicalResult YieldOp::verify() {
  if (isa<MicrobatchOp, UpdateOp>((*this)->getParentOp()) &&
      !getValues().empty())
    return emitOpError() << "hands out " << getValues().size()
                         << " values, but " << (*this)->getParentOp()->getName()
                         << " has no results";
  return success();
}

LogicalResult InputOp::verify() {
  if (failed(verifyIds(*this, getValue(), "value")))
    return failure();
  if (typeOf(getValue()).getRank() != 1 || !typeOf(getValue()).hasStaticShape())
    return emitOpError() << "must have rank 1 and a static shape, got "
                         << getValue().getType();
  return success();
}

/// Block arguments are the inputs, yielded values the outputs.
template <typename LayerLike> static LogicalResult verifyLayer(LayerLike op) {
  if (op.getInputs().empty())
    return op.emitOpError("needs at least one input");
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

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!getParameter())
    return success();
  return verifyRole(*this, tables, getParameterAttr(), StateRole::Parameter);
}
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
  return verifyRole(*this, tables, getMetricsAttr(), StateRole::Metrics);
}
LogicalResult AccumulateOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifyRole(*this, tables, getStateAttr(), StateRole::Gradient)))
    return failure();
  return verifyState(*this, tables, getStateAttr(), getValue());
}
LogicalResult SumSquaresOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyRole(*this, tables, getMetricsAttr(), StateRole::Metrics);
}
LogicalResult ClipFactorOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyRole(*this, tables, getMetricsAttr(), StateRole::Metrics);
}

LogicalResult AdamwOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (failed(verifyRole(*this, tables, getParameterAttr(),
                        StateRole::Parameter)) ||
      failed(verifyRole(*this, tables, getMetricsAttr(), StateRole::Metrics)) ||
      failed(verifyRole(*this, tables, getScalarsAttr(), StateRole::Scalars)))
    return failure();
  // The update covers this rank's part: the optimizer's states and the
  // gradient agree, and so does the new value but for its precision.
  auto parameter =
      tables.lookupNearestSymbolFrom<StateOp>(*this, getParameterAttr());
  RankedTensorType gradient = typeOf(getGradient());
  Type precision = parameter.getTensorType().getElementType();
  if (getResult().getType() != gradient.clone(precision))
    return emitOpError() << "result must be " << gradient.clone(precision)
                         << ", got " << getResult().getType();
  llvm::SmallVector<StateRole> roles = {StateRole::Momentum,
                                        StateRole::Variance};
  if (!precision.isF32())
    roles.push_back(StateRole::MainWeight);
  for (StateRole role : roles) {
    auto name =
        FlatSymbolRefAttr::get(getContext(), stateName(getParameter(), role));
    if (failed(verifyState(*this, tables, name)))
      return failure();
    auto state = tables.lookupNearestSymbolFrom<StateOp>(*this, name);
    if (state.getType() != gradient)
      return emitOpError() << "gradient is " << gradient << ", but state "
                           << name << " is " << state.getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  return failed(verifyIds(*this, getTokens(), "token ids"))
             ? failure()
             : verifyCompute(*this, {getWeight(), getResult()});
}
LogicalResult RmsNormOp::verify() {
  return verifyCompute(*this, {getX(), getWeight(), getResult()});
}
LogicalResult LinearOp::verify() {
  return verifyCompute(*this, {getX(), getWeight(), getResult()});
}
LogicalResult SwigluOp::verify() {
  return verifyCompute(*this, {getGate(), getUp(), getResult()});
}
LogicalResult AddOp::verify() {
  return verifyCompute(*this, {getLhs(), getRhs(), getResult()});
}

LogicalResult RopeOp::verify() {
  if (failed(verifyCompute(*this, {getX(), getResult()})) ||
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
  if (failed(verifyAttention(*this, getQ(), getK(), getV(), getLse(),
                             getHeadDim(), getSequenceLength())))
    return failure();
  return verifySameType(*this, getResult(), "result", getQ(), "the query");
}

LogicalResult CrossEntropyMaxOp::verify() {
  return failed(verifyF32(*this, getResult(), "maximum"))
             ? failure()
             : verifyCompute(*this, getLogits());
}
LogicalResult CrossEntropySumOp::verify() {
  if (failed(verifyIds(*this, getTargets(), "targets")) ||
      failed(verifyF32(*this, getMax(), "maximum")) ||
      failed(verifyF32(*this, getResult(), "sums")) ||
      failed(verifyCompute(*this, getLogits())))
    return failure();
  if (typeOf(getResult()).getDimSize(0) != 2)
    return emitOpError() << "result must have 2 rows, got "
                         << getResult().getType();
  return success();
}
LogicalResult CrossEntropyLossOp::verify() {
  if (!(getScale().convertToDouble() > 0))
    return emitOpError("scale must be positive");
  if (failed(verifyIds(*this, getTargets(), "targets")) ||
      failed(verifyF32(*this, getSums(), "sums")) ||
      failed(verifyF32(*this, getMax(), "maximum")) ||
      failed(verifyF32(*this, getLse(), "log-sum-exp")) ||
      failed(verifyCompute(*this, getLogits())))
    return failure();
  if (typeOf(getSums()).getDimSize(0) != 2)
    return emitOpError() << "sums must have 2 rows, got "
                         << getSums().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Backward
//===----------------------------------------------------------------------===//

LogicalResult CrossEntropyGradOp::verify() {
  if (!(getScale().convertToDouble() > 0))
    return emitOpError("scale must be positive");
  return failed(verifyIds(*this, getTargets(), "targets")) ||
                 failed(verifyF32(*this, getLse(), "log-sum-exp"))
             ? failure()
             : verifyCompute(*this, {getLogits(), getResult()});
}

LogicalResult EmbeddingGradOp::verify() {
  return failed(verifyIds(*this, getTokens(), "token ids")) ||
                 failed(verifyF32(*this, getResult(), "weight gradient"))
             ? failure()
             : verifyCompute(*this, getDy());
}
LogicalResult RmsNormGradInputOp::verify() {
  return verifyCompute(*this, {getDy(), getX(), getWeight(), getResult()});
}
LogicalResult RmsNormGradWeightOp::verify() {
  return failed(verifyF32(*this, getResult(), "weight gradient"))
             ? failure()
             : verifyCompute(*this, {getDy(), getX()});
}
LogicalResult LinearGradInputOp::verify() {
  return verifyCompute(*this, {getDy(), getWeight(), getResult()});
}
LogicalResult LinearGradWeightOp::verify() {
  return failed(verifyF32(*this, getResult(), "weight gradient"))
             ? failure()
             : verifyCompute(*this, {getDy(), getX()});
}

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this, getQ(), getK(), getV(), getLse(),
                             getHeadDim(), getSequenceLength())))
    return failure();
  std::tuple<Value, StringRef, Value, StringRef> pairs[] = {
      {getDy(), "dy", getQ(), "the query"},
      {getO(), "output", getQ(), "the query"},
      {getDq(), "dq", getQ(), "the query"},
      {getDk(), "dk", getK(), "the key"},
      {getDv(), "dv", getK(), "the key"}};
  for (auto [value, what, like, likeWhat] : pairs)
    if (failed(verifySameType(*this, value, what, like, likeWhat)))
      return failure();
  return success();
}

LogicalResult SwigluGradOp::verify() {
  return verifyCompute(*this,
                       {getDy(), getGate(), getUp(), getDgate(), getDup()});
}

//===----------------------------------------------------------------------===//
// Update
//===----------------------------------------------------------------------===//

LogicalResult AccumulateOp::verify() {
  return verifyF32(*this, getValue(), "accumulated gradient");
}

LogicalResult SumSquaresOp::verify() {
  for (Value value : getValues())
    if (failed(verifyF32(*this, value, "gradient")))
      return failure();
  if (auto axes = getReplicaAxes()) {
    if (axes->size() != getValues().size())
      return emitOpError() << "has " << axes->size()
                           << " entries in replica_axes for "
                           << getValues().size() << " values";
    if (!llvm::all_of(*axes, isAxisList))
      return emitOpError() << "replica_axes must hold lists of axis names, got "
                           << *axes;
  }
  return success();
}
