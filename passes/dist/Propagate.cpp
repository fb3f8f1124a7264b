//===- Propagate.cpp - dist-propagate -------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One forward walk, no fixpoint: the planner has fixed the degrees, so each
// operation's operands are sharded when it is reached.
//
//===----------------------------------------------------------------------===//

#include "passes/dist/Passes.h"

#include "llvm/ADT/StringSet.h"

namespace reckon::dist {
#define GEN_PASS_DEF_PROPAGATE
#include "passes/dist/Passes.h.inc"
} // namespace reckon::dist

using namespace mlir;
using namespace reckon;
using namespace reckon::dist;

namespace {

class Propagator {
public:
  Propagator(MeshOp mesh, bool sequenceParallel)
      : mesh(mesh), sequenceParallel(sequenceParallel) {}

  LogicalResult walk(Block &block);

private:
  LogicalResult visit(Operation *op);
  LogicalResult visitByRule(train::ShardingRuleOpInterface op);
  void visitRead(train::ReadOp read);
  void visitNorm(train::SumSquaresOp norm);
  LogicalResult visitLayer(Operation *layer);

  /// Puts a reshard before `op` in front of one operand.
  void reshard(OpOperand &operand, const Sharding &to);
  /// Where a partial result goes. Under sequence parallelism an activation
  /// [tokens, hidden] is split over its tokens instead of being whole on every
  /// tensor-parallel rank.
  Sharding reduced(const Sharding &partial, bool activation);
  Sharding stateSharding(Operation *from, StringRef name) {
    auto state = train::lookupState(
        from, FlatSymbolRefAttr::get(from->getContext(), name));
    return state ? shardingOf(state) : Sharding();
  }
  std::string originOf(const Axes &axes) {
    return axes.empty() ? "" : mesh.getOrigin(axes.front()).str();
  }

  MeshOp mesh;
  bool sequenceParallel;
};

Sharding Propagator::reduced(const Sharding &partial, bool activation) {
  Sharding sharding = partial;
  sharding.origin = originOf(partial.unreduced);
  sharding.unreduced.clear();
  if (sequenceParallel && activation && sharding.dims.size() == 2 &&
      sharding.dims[1].empty() && partial.unreduced == Axes{"tp"})
    sharding.dims[0].push_back("tp");
  return sharding;
}

void Propagator::reshard(OpOperand &operand, const Sharding &to) {
  Operation *op = operand.getOwner();
  Value value = operand.get();
  Sharding from = shardingOf(value);
  OpBuilder b(op);
  Location loc = value.getDefiningOp() ? value.getLoc() : op->getLoc();
  Sharding target = to;
  if (target.origin.empty())
    target.origin =
        originOf(from.unreduced.empty() ? from.flat : from.unreduced);
  auto reshard = ReshardOp::create(b, loc, value.getType(), value,
                                   from.attr(op->getContext()),
                                   target.attr(op->getContext()));
  setShardings(reshard, {target});
  operand.set(reshard.getResult());
}

/// A gradient that the update reads is reduced at once to the sharding of the
/// optimizer's states; norm and optimizer share the result.
void Propagator::visitRead(train::ReadOp read) {
  Sharding sharding = stateSharding(read, read.getState());
  setShardings(read, {sharding});
  if (sharding.unreduced.empty() || !isa<train::UpdateOp>(read->getParentOp()))
    return;
  for (Operation *user : read.getValue().getUsers()) {
    auto adamw = dyn_cast<train::AdamwOp>(user);
    if (!adamw)
      continue;
    Sharding target = stateSharding(
        read, train::stateName(adamw.getParameter(),
                               train::StateRole::Momentum));
    OpBuilder b(read->getContext());
    b.setInsertionPointAfter(read);
    target.origin = originOf(sharding.unreduced);
    auto reshard = ReshardOp::create(
        b, read.getLoc(), read.getValue().getType(), read.getValue(),
        sharding.attr(b.getContext()), target.attr(b.getContext()));
    setShardings(reshard, {target});
    read.getValue().replaceAllUsesExcept(reshard.getResult(), reshard);
    return;
  }
}

/// Loss and norm are sums over ranks: the metrics are reduced over the whole
/// mesh right behind the local norm, in one small collective.
void Propagator::visitNorm(train::SumSquaresOp norm) {
  Axes all = wideAxes(mesh);
  if (all.empty())
    return;
  auto state = train::lookupState(norm, norm.getMetricsAttr());
  Sharding partial = Sharding::replicated(state.getTensorType().getRank());
  Sharding whole = partial;
  partial.unreduced = all;
  whole.origin = originOf(all);
  OpBuilder b(norm->getContext());
  b.setInsertionPointAfter(norm);
  Location loc = NameLoc::get(b.getStringAttr("metrics"), norm.getLoc());
  auto read = train::ReadOp::create(b, loc, state.getTensorType(),
                                    norm.getMetricsAttr());
  setShardings(read, {partial});
  auto reshard = ReshardOp::create(b, loc, read.getValue().getType(),
                                   read.getValue(),
                                   partial.attr(b.getContext()),
                                   whole.attr(b.getContext()));
  setShardings(reshard, {whole});
  train::WriteOp::create(b, loc, norm.getMetricsAttr(), reshard.getResult());
}

LogicalResult Propagator::visitLayer(Operation *layer) {
  Block &body = layer->getRegion(0).front();
  if (failed(walk(body)))
    return failure();
  // Values that leave a layer are whole: partial results do not cross.
  Operation *yield = body.getTerminator();
  llvm::SmallVector<Sharding> results;
  for (OpOperand &operand : yield->getOpOperands()) {
    Sharding sharding = shardingOf(operand.get());
    if (!sharding.unreduced.empty()) {
      sharding = reduced(sharding, true);
      reshard(operand, sharding);
    }
    results.push_back(sharding);
  }
  setShardings(layer, results);
  return success();
}

LogicalResult Propagator::visitByRule(train::ShardingRuleOpInterface op) {
  train::ShardingRule rule = op.getShardingRule();

  // Partial operands: allowed where the operation is linear in all of them.
  bool keepPartial = rule.linear;
  Axes partial;
  for (auto [i, operand] : llvm::enumerate(op->getOpOperands())) {
    const Axes unreduced = shardingOf(operand.get()).unreduced;
    if (i == 0)
      partial = unreduced;
    else if (unreduced != partial)
      keepPartial = false;
  }
  if (!keepPartial) {
    partial.clear();
    for (auto [i, operand] : llvm::enumerate(op->getOpOperands())) {
      Sharding sharding = shardingOf(operand.get());
      if (!sharding.unreduced.empty())
        reshard(operand, reduced(sharding, rule.operands[i] == "th"));
    }
  }

  // The axes of each letter, from the first operand that splits it. An axis
  // splits one letter only: tokens give way, as an activation that is split by
  // tokens (sequence parallelism) is gathered before a split weight.
  llvm::SmallDenseMap<char, Axes> factors;
  llvm::StringSet<> claimed;
  std::string origin;
  auto claim = [&](char letter, const Axes &axes, const std::string &place) {
    if (letter == '.' || rule.whole.contains(letter) || axes.empty() ||
        !factors[letter].empty())
      return;
    for (const std::string &axis : axes)
      if (letter != 't' || !claimed.contains(axis))
        factors[letter].push_back(axis);
    for (const std::string &axis : factors[letter])
      claimed.insert(axis);
    if (origin.empty())
      origin = place;
  };
  // A gradient over the vocabulary has rows that no operand has: they are split
  // like the state that it is accumulated into.
  if (op->getNumResults() == 1 && op->getResult(0).hasOneUse())
    if (auto sink =
            dyn_cast<train::AccumulateOp>(*op->getResult(0).user_begin())) {
      Sharding state = stateSharding(op, sink.getState());
      for (auto [letter, axes] : llvm::zip(rule.results[0], state.dims))
        if (llvm::none_of(rule.operands, [&, letter = letter](StringRef all) {
              return all.contains(letter);
            }))
          claim(letter, axes, state.origin);
    }
  for (bool tokens : {false, true})
    for (auto [i, operand] : llvm::enumerate(op->getOpOperands())) {
      Sharding sharding = shardingOf(operand.get());
      for (auto [letter, axes] : llvm::zip(rule.operands[i], sharding.dims))
        if ((letter == 't') == tokens)
          claim(letter, axes, sharding.origin);
    }
  for (auto [i, operand] : llvm::enumerate(op->getOpOperands())) {
    Sharding sharding = shardingOf(operand.get());
    Sharding wanted = sharding;
    for (auto [d, letter] : llvm::enumerate(rule.operands[i]))
      wanted.dims[d] = letter == '.' ? Axes() : factors.lookup(letter);
    if (wanted == sharding)
      continue;
    wanted.origin = origin;
    reshard(operand, wanted);
  }

  llvm::SmallVector<Sharding> results;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Sharding sharding;
    sharding.reduction = rule.reduction.str();
    sharding.unreduced = partial;
    sharding.origin = origin;
    for (char letter : rule.reduced)
      for (const std::string &axis : factors.lookup(letter))
        sharding.unreduced.push_back(axis);
    for (char letter : rule.results[i])
      sharding.dims.push_back(letter == '.' ? Axes()
                                            : factors.lookup(letter));
    results.push_back(sharding);
  }
  setShardings(op, results);
  return success();
}

LogicalResult Propagator::visit(Operation *op) {
  if (isa<train::LayerOp, train::LayerGradOp>(op))
    return visitLayer(op);
  if (auto rule = dyn_cast<train::ShardingRuleOpInterface>(op))
    return visitByRule(rule);
  if (auto read = dyn_cast<train::ReadOp>(op)) {
    if (!read->hasAttr(shardingAttrName))
      visitRead(read);
  } else if (auto input = dyn_cast<train::InputOp>(op)) {
    Sharding rows = Sharding::replicated(1);
    if (mesh.getAxisSize("dp") > 1) {
      rows.dims[0] = {"dp"};
      rows.origin = mesh.getOrigin("dp").str();
    }
    setShardings(input, {rows});
  } else if (auto norm = dyn_cast<train::SumSquaresOp>(op)) {
    visitNorm(norm);
  } else if (auto adamw = dyn_cast<train::AdamwOp>(op)) {
    Sharding part = stateSharding(
        op, train::stateName(adamw.getParameter(),
                             train::StateRole::Momentum));
    setShardings(op, {part});
  } else if (auto sink = dyn_cast<train::AccumulateOp>(op)) {
    Sharding state = stateSharding(op, sink.getState());
    Sharding value = shardingOf(sink.getValue());
    if (value != state)
      return op->emitOpError()
             << "gradient is sharded " << value.str() << ", but state @"
             << sink.getState() << " is sharded " << state.str();
  } else if (auto write = dyn_cast<train::WriteOp>(op)) {
    Sharding state = stateSharding(op, write.getState());
    state.origin.clear(); // what splits the state is not what moves the value
    if (shardingOf(write.getValue()) != state)
      reshard(write.getValueMutable(), state);
  }
  return success();
}

LogicalResult Propagator::walk(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(visit(&op)))
      return failure();
  return success();
}

class PropagatePass
    : public reckon::dist::impl::PropagateBase<PropagatePass> {
  void runOnOperation() override {
    train::ProgramOp program = getOperation();
    MeshOp mesh = meshOf(program);
    if (!mesh) {
      program.emitOpError("has no dist.mesh; run dist-apply-spec first");
      return signalPassFailure();
    }
    auto sequence = program.getConfig()
                        ? program.getConfig()->getAs<BoolAttr>(
                              "sequence_parallel")
                        : BoolAttr();
    Propagator propagator(mesh, sequence && sequence.getValue());
    if (failed(propagator.walk(
            program.getMicrobatch().getBody().front())))
      return signalPassFailure();
    if (train::UpdateOp update = program.getUpdate())
      if (failed(propagator.walk(update.getBody().front())))
        return signalPassFailure();
  }
};

} // namespace
