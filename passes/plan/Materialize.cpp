//===- Materialize.cpp - plan-materialize ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/plan/LowerFragment.h"
#include "passes/plan/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

#include <set>

namespace reckon::planir {
#define GEN_PASS_DEF_MATERIALIZE
#include "passes/plan/Passes.h.inc"
} // namespace reckon::planir

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

namespace {

/// The axes of every collective in the job that has more than one rank, small
/// groups first.
FailureOr<SmallVector<AxisList>> collectGroups(pipe::ProgramOp program,
                                               ArrayRef<int64_t> degrees) {
  std::set<std::pair<size_t, AxisList>> found;
  auto result = program.walk([&](Operation *op) {
    if (!isa<dist::AllReduceOp, dist::ReduceScatterOp, dist::AllGatherOp>(op))
      return WalkResult::advance();
    auto axes = parseAxisNames(op, op->getAttrOfType<ArrayAttr>("axes"));
    if (failed(axes))
      return WalkResult::interrupt();
    if (llvm::any_of(*axes, [&](Axis axis) {
          return degrees[static_cast<size_t>(axis)] > 1;
        }))
      found.insert({axes->size(), *axes});
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  SmallVector<AxisList> groups;
  for (const auto &[size, axes] : found)
    groups.push_back(axes);
  return groups;
}

/// Lowers the action list of a stage.
class ActionLowering {
public:
  ActionLowering(const StageTables &tables, OpBuilder &builder)
      : tables(tables), b(builder) {}

  void lower() {
    pipe::StageOp stage = tables.stage;
    pipe::ActionsOp list = stage.findActions();
    auto result = ActionsOp::create(b, list.getLoc(), list.getSymNameAttr(),
                                    b.getI64IntegerAttr(0));
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&result.getBodyRegion().emplaceBlock());
    for (Operation &op : *list.getBody())
      lowerAction(&op);
  }

private:
  ArrayAttr bindings(ArrayAttr uses) {
    SmallVector<Attribute> list;
    for (auto use : uses.getAsRange<pipe::SlotUseAttr>())
      list.push_back(BindingAttr::get(
          b.getContext(),
          FlatSymbolRefAttr::get(b.getContext(),
                                 pipe::stringifySlotClass(use.getSlotClass())),
          use.getIndex(), use.getAcquire(), use.getRelease()));
    return b.getArrayAttr(list);
  }

  ArrayAttr buffers(ArrayAttr uses) {
    SmallVector<Attribute> list;
    for (auto use : uses.getAsRange<pipe::SlotUseAttr>())
      list.push_back(TypeAttr::get(tables.slotType(use.getSlotClass())));
    return b.getArrayAttr(list);
  }

  FlatSymbolRefAttr channel(pipe::Direction direction, int64_t source,
                            int64_t target) {
    return FlatSymbolRefAttr::get(b.getContext(),
                                  channelName(direction, source, target));
  }

  void lowerAction(Operation *op) {
    auto none = b.getDenseI64ArrayAttr({});
    pipe::StageOp stage = tables.stage;
    int64_t self = stage.getIndex();
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](pipe::RunOp run) {
          RunOp::create(b, run.getLoc(), run.getLabelAttr(),
                        run.getFragmentAttr(), FlatSymbolRefAttr(),
                        run.getMicroBatchAttr(), bindings(run.getUses()), none,
                        none);
        })
        .Case([&](pipe::LoadOp load) {
          LoadOp::create(b, load.getLoc(), load.getLabelAttr(),
                         buffers(load.getUses()), FlatSymbolRefAttr(),
                         load.getMicroBatchAttr(), bindings(load.getUses()),
                         none, none);
        })
        .Case([&](pipe::SendOp send) {
          SendOp::create(b, send.getLoc(), send.getLabelAttr(),
                         channel(send.getDirection(), self, send.getPeer()),
                         buffers(send.getUses()), FlatSymbolRefAttr(),
                         send.getMicroBatchAttr(), bindings(send.getUses()),
                         none, none);
        })
        .Case([&](pipe::RecvOp recv) {
          RecvOp::create(b, recv.getLoc(), recv.getLabelAttr(),
                         channel(recv.getDirection(), recv.getPeer(), self),
                         buffers(recv.getUses()), FlatSymbolRefAttr(),
                         recv.getMicroBatchAttr(), bindings(recv.getUses()),
                         none, none);
        });
  }

  const StageTables &tables;
  OpBuilder &b;
};

class MaterializePass
    : public reckon::planir::impl::MaterializeBase<MaterializePass> {
  void runOnOperation() override {
    for (auto program : llvm::make_early_inc_range(
             getOperation().getBody()->getOps<pipe::ProgramOp>()))
      if (failed(materialize(program)))
        return signalPassFailure();
  }

  LogicalResult materialize(pipe::ProgramOp program) {
    auto degrees = meshDegrees(program);
    if (failed(degrees))
      return failure();
    auto groups = collectGroups(program, *degrees);
    if (failed(groups))
      return failure();
    for (pipe::StageOp stage : program.getStages()) {
      if (!stage.findActions())
        return stage.emitOpError("has no action list; run pipe-schedule first");
      OpBuilder builder(program);
      auto tables = StageTables::create(builder, stage, *degrees, *groups);
      if (failed(tables))
        return failure();
      builder.setInsertionPointToEnd(tables->program.getBody());
      for (pipe::FragmentOp fragment : stage.getFragments())
        if (failed(FragmentLowering(*tables, fragment, builder).lower()))
          return failure();
      ActionLowering(*tables, builder).lower();
    }
    program.erase();
    return success();
  }
};

} // namespace
