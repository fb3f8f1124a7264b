//===- ActionOps.cpp - action lists between passes/model and the IR -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/pipe/ActionOps.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace reckon::pipe {

using model::ActionKind;
using model::SlotClassId;
using model::StageAction;

// The two enums number the classes alike, in the order of memory.
static_assert(int(SlotClass::Tokens) == int(SlotClassId::Tokens) &&
              int(SlotClass::Input) == int(SlotClassId::Input) &&
              int(SlotClass::Stash) == int(SlotClassId::Stash) &&
              int(SlotClass::Output) == int(SlotClassId::Output) &&
              int(SlotClass::Targets) == int(SlotClassId::Targets) &&
              int(SlotClass::GradIn) == int(SlotClassId::GradIn) &&
              int(SlotClass::GradOut) == int(SlotClassId::GradOut));

//===----------------------------------------------------------------------===//
// To the IR
//===----------------------------------------------------------------------===//

static ArrayAttr usesAttr(OpBuilder &builder, const StageAction &action) {
  SmallVector<Attribute> uses;
  for (const model::SlotUse &use : action.uses)
    uses.push_back(SlotUseAttr::get(builder.getContext(), SlotClass(use.cls),
                                    use.index, use.acquire, use.release));
  return builder.getArrayAttr(uses);
}

static void createRun(OpBuilder &builder, Location loc, FragmentOp fragment,
                      const StageAction &action,
                      std::optional<int64_t> microBatch) {
  RunOp::create(builder, loc, FlatSymbolRefAttr::get(fragment.getSymNameAttr()),
                builder.getStringAttr(action.label),
                microBatch ? builder.getI64IntegerAttr(*microBatch)
                           : IntegerAttr(),
                usesAttr(builder, action));
}

ActionsOp createActions(StageOp stage, const model::StageActions &list) {
  Location loc = stage.getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(stage.getBody());
  auto actions = ActionsOp::create(builder, loc, "step");
  actions.getBodyRegion().emplaceBlock();
  builder.setInsertionPointToEnd(actions.getBody());

  int64_t self = stage.getIndex();
  bool anyBackward = false;
  for (const StageAction &action : list.actions) {
    auto direction =
        action.pass == 'F' ? Direction::Forward : Direction::Backward;
    int64_t microBatch = action.microBatch;
    switch (action.kind) {
    case ActionKind::Begin:
    case ActionKind::Update: {
      auto kind = action.kind == ActionKind::Begin ? FragmentKind::Begin
                                                   : FragmentKind::Update;
      createRun(builder, loc, stage.findFragment(kind), action, std::nullopt);
      break;
    }
    case ActionKind::Run: {
      bool backward = action.pass == 'B';
      FragmentOp fragment = stage.findFragment(backward ? FragmentKind::Backward
                                                        : FragmentKind::Forward,
                                               backward && !anyBackward);
      anyBackward |= backward;
      createRun(builder, loc, fragment, action, microBatch);
      break;
    }
    case ActionKind::Load:
      LoadOp::create(builder, loc, action.label, microBatch,
                     usesAttr(builder, action));
      break;
    case ActionKind::Send:
      SendOp::create(builder, loc, action.label, direction,
                     direction == Direction::Forward ? self + 1 : self - 1,
                     action.channel, microBatch, usesAttr(builder, action));
      break;
    case ActionKind::Recv:
      RecvOp::create(builder, loc, action.label, direction,
                     direction == Direction::Forward ? self - 1 : self + 1,
                     action.channel, microBatch, usesAttr(builder, action));
      break;
    }
  }
  return actions;
}

//===----------------------------------------------------------------------===//
// From the IR
//===----------------------------------------------------------------------===//

static char passOf(Direction direction) {
  return direction == Direction::Forward ? 'F' : 'B';
}

static void readRun(StageOp stage, RunOp op, StageAction &action) {
  action.stream = model::StreamCompute;
  auto fragment = cast<FragmentOp>(
      SymbolTable::lookupSymbolIn(stage, op.getFragmentAttr()));
  action.microBatch = op.getMicroBatch().value_or(0);
  switch (fragment.getKind()) {
  case FragmentKind::Begin:
    action.kind = ActionKind::Begin;
    break;
  case FragmentKind::Update:
    action.kind = ActionKind::Update;
    break;
  case FragmentKind::Forward:
  case FragmentKind::Backward:
    action.kind = ActionKind::Run;
    action.pass = fragment.getKind() == FragmentKind::Forward ? 'F' : 'B';
    break;
  }
}

model::StageActions readActions(StageOp stage) {
  model::StageActions list;
  list.stage = stage.getIndex();
  for (Operation &op : *stage.findActions().getBody()) {
    StageAction action;
    action.label = op.getAttrOfType<StringAttr>("label").str();
    llvm::TypeSwitch<Operation *>(&op)
        .Case([&](RunOp run) { readRun(stage, run, action); })
        .Case([&](LoadOp load) {
          action.kind = ActionKind::Load;
          action.stream = model::StreamLoad;
          action.microBatch = load.getMicroBatch();
        })
        .Case([&](SendOp send) {
          action.kind = ActionKind::Send;
          action.pass = passOf(send.getDirection());
          action.stream = action.pass == 'F' ? model::StreamSendForward
                                             : model::StreamSendBackward;
          action.channel = send.getChannel();
          action.microBatch = send.getMicroBatch();
        })
        .Case([&](RecvOp recv) {
          action.kind = ActionKind::Recv;
          action.pass = passOf(recv.getDirection());
          action.stream = action.pass == 'F' ? model::StreamRecvForward
                                             : model::StreamRecvBackward;
          action.channel = recv.getChannel();
          action.microBatch = recv.getMicroBatch();
        });
    for (auto use :
         op.getAttrOfType<ArrayAttr>("uses").getAsRange<SlotUseAttr>()) {
      action.uses.push_back({SlotClassId(use.getSlotClass()), use.getIndex(),
                             use.getAcquire(), use.getRelease()});
      int64_t &count = list.counts[size_t(use.getSlotClass())];
      count = std::max(count, use.getIndex() + 1);
    }
    list.actions.push_back(std::move(action));
  }
  return list;
}

} // namespace reckon::pipe
