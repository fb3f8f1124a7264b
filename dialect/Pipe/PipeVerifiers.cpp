//===- PipeVerifiers.cpp - the rules of level 3 ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each rule listed under "Constraints" in PipeOps.td is checked here once.
// Rules that need all stages at once (messages in order on both sides, no
// deadlock, slot counts) belong to the pass verify-schedule.
//
//===----------------------------------------------------------------------===//
#include "dialect/Pipe/Pipe.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;
using namespace reckon::pipe;

static LogicalResult verifyActions(ActionsOp list);

//===----------------------------------------------------------------------===//
// Program and stage
//===----------------------------------------------------------------------===//

/// Type of what one fragment leaves and the neighbour's fragment takes.
static LogicalResult verifyBorder(StageOp from, FragmentOp source,
                                  StringRef result, StageOp to,
                                  FragmentOp target, StringRef argument) {
  Value sent = source ? source.findResult(result) : Value();
  Value received = target ? target.findArgument(argument) : Value();
  if (!sent || !received)
    return success(); // the stage verifier names a missing role
  if (sent.getType() == received.getType())
    return success();
  return target.emitOpError("expected ")
         << argument << " of type " << sent.getType() << ", the " << result
         << " of stage " << from.getIndex() << ", got " << received.getType();
}

LogicalResult ProgramOp::verifyRegions() {
  if (int64_t(getNumMicroBatches()) < 1)
    return emitOpError("expected at least 1 micro-batch, got ")
           << int64_t(getNumMicroBatches());

  SmallVector<StageOp> stages;
  for (Operation &op : *getBody()) {
    auto stage = dyn_cast<StageOp>(op);
    if (!stage)
      return op.emitOpError("is not a pipe.stage, which is all that a "
                            "pipe.program holds");
    if (int64_t(stage.getIndex()) != int64_t(stages.size()))
      return stage.emitOpError("expected index ")
             << stages.size() << " in order, got " << stage.getIndex();
    stages.push_back(stage);
  }
  if (stages.empty())
    return emitOpError("expected at least one stage");
  if (stages.front().findActions() && !getSchedule())
    return emitOpError("expected the name of the schedule of its action lists");

  for (size_t i = 1; i < stages.size(); ++i) {
    StageOp lower = stages[i - 1], upper = stages[i];
    FragmentOp forward = lower.findFragment(FragmentKind::Forward);
    if (failed(verifyBorder(lower, forward, "output", upper,
                            upper.findFragment(FragmentKind::Forward),
                            "input")))
      return failure();
    for (bool first : {true, false})
      if (failed(verifyBorder(
              upper, upper.findFragment(FragmentKind::Backward, first),
              "grad_out", lower,
              lower.findFragment(FragmentKind::Backward, first), "grad_in")))
        return failure();
    if (!lower.findActions() != !upper.findActions())
      return upper.emitOpError("expected an action list in every stage or in "
                               "none, got one only in stage ")
             << (lower.findActions() ? lower : upper).getIndex();
  }
  return success();
}

/// The fragments of one kind, counted.
static LogicalResult verifyFragmentCount(StageOp stage, FragmentKind kind,
                                         bool first, int64_t expected) {
  int64_t count = llvm::count_if(stage.getFragments(), [&](FragmentOp it) {
    return it.getKind() == kind && it.getFirstMicroBatch() == first;
  });
  if (count == expected)
    return success();
  return stage.emitOpError("expected ")
         << expected << " fragment of kind " << stringifyFragmentKind(kind)
         << (kind != FragmentKind::Backward ? ""
             : first                        ? " with first_micro_batch"
                                            : " without first_micro_batch")
         << ", got " << count;
}

/// A value that enters or leaves exactly where the stage's place says so.
static LogicalResult verifyEdge(FragmentOp fragment, StringRef role,
                                bool isResult, bool expected) {
  Value value =
      isResult ? fragment.findResult(role) : fragment.findArgument(role);
  if (bool(value) == expected)
    return success();
  return fragment.emitOpError(expected ? "expected " : "unexpected ")
         << (isResult ? "result" : "argument") << " of role " << role
         << " in stage " << fragment.getStage().getIndex() << " of "
         << fragment.getStage().getProgram().getBody()->getOperations().size();
}

/// The types of the values with role "saved", in order.
static SmallVector<Type> savedTypes(ArrayAttr roles, TypeRange types) {
  SmallVector<Type> saved;
  for (auto [role, type] :
       llvm::zip(roles.getAsValueRange<StringAttr>(), types))
    if (role == "saved")
      saved.push_back(type);
  return saved;
}

LogicalResult StageOp::verifyRegions() {
  int64_t microBatches = getProgram().getNumMicroBatches();
  if (failed(verifyFragmentCount(*this, FragmentKind::Begin, false, 1)) ||
      failed(verifyFragmentCount(*this, FragmentKind::Forward, false, 1)) ||
      failed(verifyFragmentCount(*this, FragmentKind::Backward, true, 1)) ||
      failed(verifyFragmentCount(*this, FragmentKind::Backward, false,
                                 microBatches > 1 ? 1 : 0)) ||
      failed(verifyFragmentCount(*this, FragmentKind::Update, false, 1)))
    return failure();
  if (auto lists = llvm::to_vector(getBody()->getOps<ActionsOp>());
      lists.size() > 1)
    return lists[1].emitOpError("is the second action list of this stage, "
                                "expected at most one");

  FragmentOp forward = findFragment(FragmentKind::Forward);
  if (failed(verifyEdge(forward, "tokens", false, isFirst())) ||
      failed(verifyEdge(forward, "input", false, !isFirst())) ||
      failed(verifyEdge(forward, "output", true, !isLast())))
    return failure();
  SmallVector<Type> saved =
      savedTypes(forward.getReturn().getRoles(),
                 forward.getReturn().getValues().getTypes());
  for (FragmentOp backward : getFragments()) {
    if (backward.getKind() != FragmentKind::Backward)
      continue;
    if (failed(verifyEdge(backward, "tokens", false, isFirst())) ||
        failed(verifyEdge(backward, "input", false, !isFirst())) ||
        failed(verifyEdge(backward, "targets", false, isLast())) ||
        failed(verifyEdge(backward, "grad_in", false, !isLast())) ||
        failed(verifyEdge(backward, "grad_out", true, !isFirst())))
      return failure();
    SmallVector<Type> taken =
        savedTypes(backward.getRoles(), backward.getBody()->getArgumentTypes());
    if (taken != saved)
      return backward.emitOpError("expected the ")
             << saved.size() << " values that @" << forward.getSymName()
             << " saves, in order and with their types, got " << taken.size()
             << " saved arguments";
  }
  ActionsOp list = findActions();
  return list ? verifyActions(list) : success();
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// One role per value, each allowed, none but "saved" twice.
static LogicalResult verifyRoles(Operation *op, StringRef what, ArrayAttr roles,
                                 size_t count, FragmentKind kind,
                                 ArrayRef<StringRef> allowed) {
  if (roles.size() != count)
    return op->emitOpError("expected one role per ")
           << what << ", got " << roles.size() << " roles for " << count;
  llvm::StringSet<> seen;
  for (StringRef role : roles.getAsValueRange<StringAttr>()) {
    if (!llvm::is_contained(allowed, role)) {
      InFlightDiagnostic error = op->emitOpError("expected ");
      if (allowed.empty())
        error << "no " << what;
      else
        error << "a role among " << llvm::join(allowed, ", ");
      return error << " in a fragment of kind " << stringifyFragmentKind(kind)
                   << ", got '" << role << "'";
    }
    if (!seen.insert(role).second && role != "saved")
      return op->emitOpError("expected role '") << role << "' at most once";
  }
  return success();
}

LogicalResult FragmentOp::verify() {
  if (getFirstMicroBatch() && getKind() != FragmentKind::Backward)
    return emitOpError("expected first_micro_batch only on kind backward, got ")
           << stringifyFragmentKind(getKind());
  SmallVector<StringRef> allowed;
  if (getKind() == FragmentKind::Forward)
    allowed = {"tokens", "input"};
  else if (getKind() == FragmentKind::Backward)
    allowed = {"tokens", "input", "saved", "targets", "grad_in"};
  return verifyRoles(*this, "argument", getRoles(),
                     getBodyRegion().getNumArguments(), getKind(), allowed);
}

LogicalResult FragmentOp::verifyRegions() {
  if (getBody()->empty() || !isa<ReturnOp>(getBody()->back()))
    return emitOpError("expected to end with pipe.return");
  return success();
}

LogicalResult ReturnOp::verify() {
  FragmentKind kind = cast<FragmentOp>((*this)->getParentOp()).getKind();
  SmallVector<StringRef> allowed;
  if (kind == FragmentKind::Forward)
    allowed = {"output", "saved"};
  else if (kind == FragmentKind::Backward)
    allowed = {"grad_out"};
  if (failed(verifyRoles(*this, "result", getRoles(), getValues().size(), kind,
                         allowed)))
    return failure();
  llvm::SmallDenseSet<Value> seen;
  for (auto [number, value] : llvm::enumerate(getValues())) {
    if (isa<BlockArgument>(value))
      return emitOpError("result #")
             << number << " is an argument: its slot already holds it, pass "
             << "it to the backward by the argument's own role";
    if (!seen.insert(value).second)
      return emitOpError("result #")
             << number << " is returned twice, expected one slot per value";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Single actions
//===----------------------------------------------------------------------===//

static StageOp stageOf(Operation *action) {
  return action->getParentOfType<StageOp>();
}

static LogicalResult verifyUseIndices(Operation *op, ArrayAttr uses) {
  for (auto use : uses.getAsRange<SlotUseAttr>())
    if (use.getIndex() < 0)
      return op->emitOpError("expected a slot index of at least 0, got ")
             << use.getIndex();
  return success();
}

static LogicalResult verifyMicroBatch(Operation *op, int64_t microBatch) {
  int64_t count = stageOf(op).getProgram().getNumMicroBatches();
  if (microBatch >= 0 && microBatch < count)
    return success();
  return op->emitOpError("expected a micro-batch below ")
         << count << ", got " << microBatch;
}

LogicalResult LoadOp::verify() {
  if (failed(verifyMicroBatch(*this, getMicroBatch())) ||
      failed(verifyUseIndices(*this, getUses())))
    return failure();
  for (auto use : getUses().getAsRange<SlotUseAttr>())
    if ((use.getSlotClass() != SlotClass::Tokens &&
         use.getSlotClass() != SlotClass::Targets) ||
        !use.getAcquire())
      return emitOpError("expected acquired slots of class tokens or targets, "
                         "got class ")
             << stringifySlotClass(use.getSlotClass())
             << (use.getAcquire() ? "" : " without acquire");
  return success();
}

/// Sends and receives: neighbours, the channel's number, and one slot of the
/// direction's class, at the end of its life or its start.
template <typename TransferOp>
static LogicalResult verifyTransfer(TransferOp op, bool isSend) {
  if (failed(verifyMicroBatch(op, op.getMicroBatch())) ||
      failed(verifyUseIndices(op, op.getUses())))
    return failure();
  StageOp stage = stageOf(op);
  bool forward = op.getDirection() == Direction::Forward;
  // Forward sends and backward receives talk to the stage above.
  bool up = forward == isSend;
  int64_t self = stage.getIndex(), peer = op.getPeer();
  if (up ? stage.isLast() : stage.isFirst())
    return op.emitOpError("expected a neighbour ")
           << (up ? "above" : "below") << " stage " << self << ", got none";
  if (peer != (up ? self + 1 : self - 1))
    return op.emitOpError("expected the neighbour ")
           << (up ? self + 1 : self - 1) << " as peer, got " << peer;
  int64_t channel = channelOf(up ? self : peer, op.getDirection());
  if (int64_t(op.getChannel()) != channel)
    return op.emitOpError("expected channel ")
           << channel << " between stages " << self << " and " << peer
           << ", got " << op.getChannel();
  SlotClass slotClass = isSend
                            ? (forward ? SlotClass::Output : SlotClass::GradOut)
                            : (forward ? SlotClass::Input : SlotClass::GradIn);
  auto uses = llvm::to_vector(op.getUses().template getAsRange<SlotUseAttr>());
  if (uses.size() != 1 || uses[0].getSlotClass() != slotClass ||
      !(isSend ? uses[0].getRelease() : uses[0].getAcquire()))
    return op.emitOpError("expected one slot of class ")
           << stringifySlotClass(slotClass) << " that is "
           << (isSend ? "released" : "acquired") << " here";
  return success();
}

LogicalResult RecvOp::verify() { return verifyTransfer(*this, false); }
LogicalResult SendOp::verify() { return verifyTransfer(*this, true); }

LogicalResult RunOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto fragment =
      symbols.lookupNearestSymbolFrom<FragmentOp>(*this, getFragmentAttr());
  if (!fragment)
    return emitOpError("expected a fragment of this stage, got @")
           << getFragment();
  bool onMicroBatch = fragment.getKind() == FragmentKind::Forward ||
                      fragment.getKind() == FragmentKind::Backward;
  if (onMicroBatch != getMicroBatch().has_value())
    return emitOpError(onMicroBatch ? "expected" : "unexpected")
           << " micro_batch for a fragment of kind "
           << stringifyFragmentKind(fragment.getKind());
  if (onMicroBatch && failed(verifyMicroBatch(*this, *getMicroBatch())))
    return failure();
  if (failed(verifyUseIndices(*this, getUses())))
    return failure();

  SmallVector<SlotClass> expected = fragment.getSlotClasses(), got;
  for (auto use : getUses().getAsRange<SlotUseAttr>())
    got.push_back(use.getSlotClass());
  if (expected == got)
    return success();
  InFlightDiagnostic error = emitOpError("expected slots of classes");
  for (SlotClass slotClass : expected)
    error << ' ' << stringifySlotClass(slotClass);
  error << ", those of @" << getFragment() << ", got";
  for (SlotClass slotClass : got)
    error << ' ' << stringifySlotClass(slotClass);
  return error;
}

//===----------------------------------------------------------------------===//
// The action list
//===----------------------------------------------------------------------===//

namespace {
/// Walks a list in order and keeps what each micro-batch and slot has seen.
struct ListChecker {
  StageOp stage;
  int64_t microBatches;
  SmallVector<bool> forwardDone, backwardDone;
  bool anyBackward = false;
  /// Slots between acquire and release, with the action that acquired them.
  std::map<std::pair<SlotClass, int64_t>, Operation *> held;

  explicit ListChecker(StageOp stage)
      : stage(stage), microBatches(stage.getProgram().getNumMicroBatches()),
        forwardDone(std::max<int64_t>(microBatches, 0)),
        backwardDone(forwardDone.size()) {}

  LogicalResult run(RunOp op);
  LogicalResult slots(Operation *op, ArrayAttr uses);
  LogicalResult end(ActionsOp list);
};
} // namespace

LogicalResult ListChecker::run(RunOp op) {
  auto fragment = dyn_cast_or_null<FragmentOp>(
      SymbolTable::lookupSymbolIn(stage, op.getFragmentAttr()));
  // RunOp::verifySymbolUses reports these two.
  if (!fragment || !op.getMicroBatch() ||
      int64_t(*op.getMicroBatch()) >= microBatches ||
      int64_t(*op.getMicroBatch()) < 0)
    return success();
  int64_t microBatch = *op.getMicroBatch();
  bool backward = fragment.getKind() == FragmentKind::Backward;
  auto done = backward ? MutableArrayRef<bool>(backwardDone)
                       : MutableArrayRef<bool>(forwardDone);
  if (done[microBatch])
    return op.emitOpError("runs micro-batch ")
           << microBatch << (backward ? " backward" : " forward")
           << " a second time, expected once";
  done[microBatch] = true;
  if (!backward)
    return success();
  if (!forwardDone[microBatch])
    return op.emitOpError("expected the forward of micro-batch ")
           << microBatch << " before its backward";
  if (fragment.getFirstMicroBatch() == anyBackward)
    return op.emitOpError(
               anyBackward
                   ? "expected a backward that adds to the gradients"
                   : "expected the backward with first_micro_batch first")
           << ", got @" << fragment.getSymName();
  anyBackward = true;
  return success();
}

LogicalResult ListChecker::slots(Operation *op, ArrayAttr uses) {
  for (auto use : uses.getAsRange<SlotUseAttr>()) {
    std::pair<SlotClass, int64_t> slot = {use.getSlotClass(), use.getIndex()};
    auto name = [&] {
      return (stringifySlotClass(slot.first) + " " + Twine(slot.second)).str();
    };
    auto it = held.find(slot);
    if (use.getAcquire() && it != held.end()) {
      InFlightDiagnostic error = op->emitOpError("acquires slot ")
                                 << name() << ", which is not released yet";
      error.attachNote(it->second->getLoc()) << "acquired here";
      return error;
    }
    if (!use.getAcquire() && it == held.end())
      return op->emitOpError("uses slot ")
             << name() << ", which no action before it has acquired";
    if (use.getRelease())
      held.erase(slot);
    else if (use.getAcquire())
      held[slot] = op;
  }
  return success();
}

LogicalResult ListChecker::end(ActionsOp list) {
  for (int64_t microBatch = 0; microBatch < microBatches; ++microBatch) {
    bool backward = forwardDone[microBatch];
    if (!forwardDone[microBatch] || !backwardDone[microBatch])
      return list.emitOpError("expected a ")
             << (backward ? "backward" : "forward") << " of micro-batch "
             << microBatch;
  }
  if (held.empty())
    return success();
  auto [slot, op] = *held.begin();
  return op->emitOpError("acquires slot ")
         << stringifySlotClass(slot.first) << ' ' << slot.second
         << ", which no action releases";
}

/// Called once the stage's fragments are known to be sound.
static LogicalResult verifyActions(ActionsOp list) {
  ListChecker checker(stageOf(list));
  auto isRunOf = [&](Operation &op, FragmentKind kind) {
    auto run = dyn_cast<RunOp>(op);
    FragmentOp fragment = checker.stage.findFragment(kind);
    return run && fragment && run.getFragment() == fragment.getSymName();
  };
  Block &body = *list.getBody();
  if (body.empty() || !isRunOf(body.front(), FragmentKind::Begin))
    return list.emitOpError("expected to start with the begin fragment");
  if (!isRunOf(body.back(), FragmentKind::Update))
    return list.emitOpError("expected to end with the update fragment");

  for (Operation &op : body) {
    auto uses = op.getAttrOfType<ArrayAttr>("uses");
    if (!isa<LoadOp, RecvOp, SendOp, RunOp>(op) || !uses)
      return op.emitOpError("is not an action");
    if (auto run = dyn_cast<RunOp>(op))
      if (failed(checker.run(run)))
        return failure();
    if (failed(checker.slots(&op, uses)))
      return failure();
  }
  return checker.end(list);
}
