//===- OutlineStages.cpp - one program to one set of fragments per stage --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/pipe/Passes.h"
#include "passes/pipe/SplitUpdate.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace reckon::pipe {
#define GEN_PASS_DEF_OUTLINESTAGES
#include "passes/pipe/Passes.h.inc"

namespace {

/// The two parts that a micro-batch is cut into.
enum Part { Forward = 0, Backward = 1 };

/// A part of a stage while layers are moved into it.
struct Piece {
  Piece(size_t stage, Part part, FragmentOp fragment)
      : stage(stage), part(part), fragment(fragment),
        block(fragment.getBody()) {}

  size_t stage;
  Part part;
  FragmentOp fragment;
  Block *block;
  /// Layer results and inputs of the program that are known here.
  DenseMap<Value, Value> known;
  /// Arguments in the order of demand, with the value they come from: of the
  /// forward for "saved", else of the neighbour or the program.
  SmallVector<std::pair<StringRef, Value>> arguments;
  /// The program's value that the neighbour needs: output or grad_out.
  Value result;

  Value argument(StringRef role, Value source) {
    for (auto [i, existing] : llvm::enumerate(arguments))
      if (existing == std::pair(role, source))
        return block->getArgument(i);
    arguments.push_back({role, source});
    return block->addArgument(source.getType(), source.getLoc());
  }
  /// The argument of a role other than "saved", or null.
  Value find(StringRef role) {
    for (auto [i, existing] : llvm::enumerate(arguments))
      if (existing.first == role)
        return block->getArgument(i);
    return {};
  }
};

class Outliner {
public:
  explicit Outliner(train::ProgramOp program) : program(program) {}
  LogicalResult run();

private:
  LogicalResult collect();
  LogicalResult moveLayers();
  LogicalResult addBorders();
  Value resolve(Piece &piece, Value value, Operation *user);
  Value fromNeighbour(Piece &piece, StringRef role, Value value,
                      Operation *user);
  Value fromForward(Piece &piece, Value value);
  void createStages();
  void placeStates(const StateOwners &owners);
  SmallVector<Value> sortArguments(Piece &piece);
  void finishPieces();

  Piece &piece(size_t stage, Part part) { return pieces[2 * stage + part]; }
  size_t numStages() const { return pieces.size() / 2; }

  train::ProgramOp program;
  SmallVector<StageOp> stages;
  SmallVector<FragmentOp> updates;
  std::vector<Piece> pieces;
  SmallVector<SmallVector<StringRef>> layers;
  /// The piece of each layer, by its op.
  DenseMap<Operation *, std::pair<size_t, Part>> placeOf;
};

//===----------------------------------------------------------------------===//
// Which layer goes where
//===----------------------------------------------------------------------===//

/// Whether another layer's forward reads one of the layer's results.
bool feedsALayer(train::LayerOp layer) {
  return llvm::any_of(layer->getUsers(), [](Operation *user) {
    return isa<train::LayerOp>(user);
  });
}

LogicalResult Outliner::collect() {
  for (Operation &op :
       program.getMicrobatch().getBody().front().without_terminator()) {
    if (isa<train::InputOp>(op))
      continue;
    auto layer = dyn_cast<train::LayerOp>(op);
    auto grad = dyn_cast<train::LayerGradOp>(op);
    if (!layer && !grad)
      return op.emitOpError("stands between layers, expected it inside one");
    auto stage = layer ? layer.getStage() : grad.getStage();
    if (!stage)
      return op.emitOpError("expected a stage; run pipe-assign-stages first");
    // The head runs where its gradient does; so would any other last layer.
    Part part = layer && feedsALayer(layer) ? Forward : Backward;
    placeOf[&op] = {size_t(*stage), part};
    layers.resize(std::max(layers.size(), size_t(*stage) + 1));
    if (layer)
      layers[*stage].push_back(layer.getName());
  }
  for (auto [stage, names] : llvm::enumerate(layers))
    if (names.empty())
      return program.emitOpError("expected layers in stage ")
             << stage << " of " << layers.size() << ", got none";
  if (layers.empty())
    return program.emitOpError("expected at least one layer");

  return success();
}

//===----------------------------------------------------------------------===//
// Values that cross a border
//===----------------------------------------------------------------------===//

/// A value of the neighbour stage's same part, which has to send it.
Value Outliner::fromNeighbour(Piece &piece, StringRef role, Value value,
                              Operation *user) {
  auto [stage, part] = placeOf.at(value.getDefiningOp());
  Piece &source = this->piece(stage, part);
  if (source.result && source.result != value) {
    InFlightDiagnostic error =
        user->emitOpError("needs a second value of stage ")
        << stage << "; neighbours exchange one tensor per micro-batch";
    error.attachNote(value.getLoc()) << "this value";
    error.attachNote(source.result.getLoc()) << "sent already";
    return {};
  }
  source.result = value;
  return piece.argument(role, value);
}

/// A value of the same stage's forward: an argument there is bound again by
/// its own role, anything else is saved.
Value Outliner::fromForward(Piece &piece, Value value) {
  Piece &forward = this->piece(piece.stage, Forward);
  Value source = forward.known.at(value);
  if (auto argument = dyn_cast<BlockArgument>(source)) {
    auto [role, origin] = forward.arguments[argument.getArgNumber()];
    return piece.argument(role, origin);
  }
  return piece.argument("saved", source);
}

/// The program's `value` as seen in a piece; null after an error.
Value Outliner::resolve(Piece &piece, Value value, Operation *user) {
  if (Value known = piece.known.lookup(value))
    return known;
  Value seen;
  bool forward = piece.part == Forward;
  if (auto input = value.getDefiningOp<train::InputOp>()) {
    bool tokens = input.getKind() == train::InputKind::Tokens;
    // Tokens enter in the first stage, targets in the last stage's backward.
    if (tokens ? piece.stage == 0 : !forward && piece.stage + 1 == numStages())
      seen = piece.argument(tokens ? "tokens" : "targets", value);
  } else {
    auto [stage, part] = placeOf.at(value.getDefiningOp());
    if (part == Forward && stage == piece.stage)
      seen = fromForward(piece, value);
    else if (part == Forward && stage + 1 == piece.stage) {
      // A backward that reads the stage's input finds it where the forward
      // received it.
      Piece &receiver = this->piece(piece.stage, Forward);
      Value received = fromNeighbour(receiver, "input", value, user);
      if (!received)
        return {};
      receiver.known[value] = received;
      seen = forward ? received : piece.argument("input", value);
    } else if (!forward && part == Backward && stage == piece.stage + 1) {
      seen = fromNeighbour(piece, "grad_in", value, user);
      if (!seen)
        return {};
    }
  }
  if (!seen) {
    InFlightDiagnostic error = user->emitOpError("in the ")
                               << (forward ? "forward" : "backward")
                               << " of stage " << piece.stage
                               << " needs a value that cannot reach it; only "
                                  "neighbours exchange values";
    error.attachNote(value.getLoc()) << "this value";
    return {};
  }
  return piece.known[value] = seen;
}

//===----------------------------------------------------------------------===//
// Moving layer bodies
//===----------------------------------------------------------------------===//

LogicalResult Outliner::moveLayers() {
  Block &microbatch = program.getMicrobatch().getBody().front();
  for (Operation &op : microbatch.without_terminator()) {
    auto place = placeOf.find(&op);
    if (place == placeOf.end())
      continue;
    Piece &target = piece(place->second.first, place->second.second);
    Block &body = op.getRegion(0).front();
    for (auto [argument, operand] :
         llvm::zip(body.getArguments(), op.getOperands())) {
      Value value = resolve(target, operand, &op);
      if (!value)
        return failure();
      argument.replaceAllUsesWith(value);
    }
    auto yield = cast<train::YieldOp>(body.getTerminator());
    for (auto [result, value] : llvm::zip(op.getResults(), yield.getValues()))
      target.known[result] = value;
    yield.erase();
    target.block->getOperations().splice(target.block->end(),
                                         body.getOperations());
  }
  return success();
}

/// Slots live from the forward to the backward of a micro-batch whether or not
/// both read them, so both bind tokens, input and grad_in.
LogicalResult Outliner::addBorders() {
  for (size_t stage = 0; stage < numStages(); ++stage) {
    Piece &forward = piece(stage, Forward), &backward = piece(stage, Backward);
    StringRef role = stage == 0 ? "tokens" : "input";
    bool last = stage + 1 == numStages();
    if (!forward.find(role))
      return program.emitOpError("expected the forward of stage ")
             << stage << " to read its " << role;
    if (!backward.find(role)) {
      for (auto [existing, origin] : forward.arguments)
        if (existing == role)
          backward.argument(role, origin);
    }
    StringRef end = last ? "targets" : "grad_in";
    if (!backward.find(end))
      return program.emitOpError("expected the backward of stage ")
             << stage << " to read its " << end;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Stages and their fragments
//===----------------------------------------------------------------------===//

FragmentOp createFragment(OpBuilder &builder, Location loc, StringRef name,
                          FragmentKind kind) {
  auto fragment = FragmentOp::create(
      builder, loc, name, kind, builder.getStrArrayAttr({}), /*first=*/false);
  fragment.getBodyRegion().emplaceBlock();
  return fragment;
}

/// Builds the stages with empty fragments; all that follows fills them, so
/// that whatever an error leaves behind belongs to the module.
void Outliner::createStages() {
  Location loc = program.getLoc();
  OpBuilder builder(program);
  auto schedule = program->getAttrOfType<StringAttr>("schedule");
  if (DictionaryAttr config = program.getConfigAttr(); config && !schedule)
    schedule = config.getAs<StringAttr>("schedule");
  auto result = ProgramOp::create(
      builder, loc, program.getSymNameAttr(), schedule,
      program.getSequenceLengthAttr(), program.getMicroBatchSizeAttr(),
      program.getNumMicroBatchesAttr(), program.getGlobalBatchSizeAttr(),
      program.getPrecisionAttr(), program.getConfigAttr());
  for (NamedAttribute attribute : program->getDiscardableAttrs())
    if (attribute.getName() != "schedule")
      result->setAttr(attribute.getName(), attribute.getValue());
  result.getBodyRegion().emplaceBlock();
  // What is neither state nor step, such as the mesh, holds for all stages.
  for (Operation &op : llvm::make_early_inc_range(program.getBody().front()))
    if (!isa<train::StateOp, train::MicrobatchOp, train::UpdateOp>(op))
      op.moveBefore(result);

  for (auto [stage, names] : llvm::enumerate(layers)) {
    builder.setInsertionPointToEnd(result.getBody());
    auto op =
        StageOp::create(builder, loc, stage, builder.getStrArrayAttr(names));
    op.getBodyRegion().emplaceBlock();
    builder.setInsertionPointToEnd(op.getBody());
    createFragment(builder, loc, "begin", FragmentKind::Begin);
    FragmentOp forward =
        createFragment(builder, loc, "forward", FragmentKind::Forward);
    FragmentOp backward =
        createFragment(builder, loc, "backward_first", FragmentKind::Backward);
    updates.push_back(
        createFragment(builder, loc, "update", FragmentKind::Update));
    stages.push_back(op);
    pieces.emplace_back(stage, Forward, forward);
    pieces.emplace_back(stage, Backward, backward);
  }
}

/// Copies states to their stages and clears the metrics at a step's begin:
/// they add up over its micro-batches.
void Outliner::placeStates(const StateOwners &owners) {
  for (StageOp stage : stages) {
    FragmentOp begin = stage.findFragment(FragmentKind::Begin);
    OpBuilder builder(begin);
    OpBuilder inside = OpBuilder::atBlockEnd(begin.getBody());
    for (auto state : program.getBody().getOps<train::StateOp>()) {
      if (!owners.holds(state.getSymName(), stage.getIndex()))
        continue;
      builder.clone(*state);
      if (state.getRole() == train::StateRole::Metrics)
        train::FillOp::create(inside, state.getLoc(), state.getSymName());
    }
    ReturnOp::create(inside, begin.getLoc());
  }
}

/// Orders the arguments by role (tokens, input, saved, targets, grad_in), saved
/// values by their definition in the forward, and returns the values that the
/// saved ones come from.
SmallVector<Value> Outliner::sortArguments(Piece &piece) {
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, piece.arguments.size()));
  llvm::stable_sort(order, [&](unsigned a, unsigned b) {
    auto [roleA, valueA] = piece.arguments[a];
    auto [roleB, valueB] = piece.arguments[b];
    if (roleA != roleB)
      return *slotClassOfRole(roleA) < *slotClassOfRole(roleB);
    Operation *opA = valueA.getDefiningOp(), *opB = valueB.getDefiningOp();
    if (opA != opB)
      return opA->isBeforeInBlock(opB);
    return cast<OpResult>(valueA).getResultNumber() <
           cast<OpResult>(valueB).getResultNumber();
  });

  unsigned count = order.size();
  DenseMap<Value, Value> replaced;
  SmallVector<std::pair<StringRef, Value>> sorted;
  SmallVector<Value> saved;
  for (unsigned old : order) {
    BlockArgument before = piece.block->getArgument(old);
    Value after = piece.block->addArgument(before.getType(), before.getLoc());
    before.replaceAllUsesWith(after);
    replaced[before] = after;
    sorted.push_back(piece.arguments[old]);
    if (sorted.back().first == "saved")
      saved.push_back(sorted.back().second);
  }
  for (auto &[value, known] : piece.known)
    if (Value after = replaced.lookup(known))
      known = after;
  piece.block->eraseArguments(0, count);
  piece.arguments = std::move(sorted);
  return saved;
}

/// Gives every forward and backward its arguments' roles and its results, and
/// the backward its second copy.
void Outliner::finishPieces() {
  OpBuilder builder(program.getContext());
  for (Piece &piece : pieces) {
    bool forward = piece.part == Forward;
    SmallVector<Value> values;
    SmallVector<StringRef> roles;
    if (piece.result) {
      values.push_back(piece.known.at(piece.result));
      roles.push_back(forward ? "output" : "grad_out");
    }
    if (forward)
      for (Value saved : sortArguments(this->piece(piece.stage, Backward))) {
        values.push_back(saved);
        roles.push_back("saved");
      }
    FragmentOp fragment = piece.fragment;
    builder.setInsertionPointToEnd(piece.block);
    ReturnOp::create(builder, fragment.getLoc(), values,
                     builder.getStrArrayAttr(roles));
    fragment.setRolesAttr(builder.getStrArrayAttr(
        llvm::to_vector(llvm::make_first_range(piece.arguments))));
    if (forward)
      continue;
    if (program.getNumMicroBatches() > 1) {
      builder.setInsertionPointAfter(fragment);
      cast<FragmentOp>(builder.clone(*fragment)).setSymName("backward");
    }
    fragment.setFirstMicroBatch(true);
  }
}

LogicalResult Outliner::run() {
  if (failed(collect()))
    return failure();
  // Bodies move, so owners are read off before.
  StateOwners owners(layers.size());
  for (auto &[op, place] : placeOf)
    op->walk([&, stage = place.first](Operation *inner) {
      owners.use(inner, stage);
    });
  if (failed(owners.complete(program)))
    return failure();

  createStages();
  placeStates(owners);
  if (failed(moveLayers()) || failed(addBorders()))
    return failure();
  finishPieces();
  if (auto update = program.getUpdate())
    if (failed(splitUpdate(update, owners, updates)))
      return failure();
  for (FragmentOp update : updates) {
    OpBuilder builder = OpBuilder::atBlockEnd(update.getBody());
    ReturnOp::create(builder, update.getLoc());
  }
  program.erase();
  return success();
}

struct OutlineStages : impl::OutlineStagesBase<OutlineStages> {
  void runOnOperation() override {
    for (auto program :
         llvm::to_vector(getOperation().getOps<train::ProgramOp>()))
      if (failed(Outliner(program).run()))
        return signalPassFailure();
  }
};

} // namespace

} // namespace reckon::pipe
