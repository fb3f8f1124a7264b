//===- AssignStreams.cpp - plan-assign-streams ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/model/ActionList.h"
#include "passes/plan/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

namespace reckon::planir {
#define GEN_PASS_DEF_ASSIGNSTREAMS
#include "passes/plan/Passes.h.inc"
} // namespace reckon::planir

using namespace mlir;
using namespace reckon;
using namespace reckon::planir;

namespace {

class AssignStreamsPass
    : public reckon::planir::impl::AssignStreamsBase<AssignStreamsPass> {
  void runOnOperation() override {
    ProgramOp program = getOperation();
    SymbolTable symbols(program);
    auto stream = [&](int number) {
      return FlatSymbolRefAttr::get(&getContext(), model::streamName(number));
    };
    /// The stream of a collective: its own for groups inside tensor
    /// parallelism, which sit on the critical path of every layer.
    auto collective = [&](FlatSymbolRefAttr group) {
      ArrayRef<int64_t> axes =
          symbols.lookup<GroupOp>(group.getValue()).getAxes();
      bool tensor = llvm::all_of(axes, [](int64_t axis) {
        return axis == static_cast<int64_t>(Axis::tp);
      });
      return stream(tensor ? model::StreamTp : model::StreamDp);
    };
    for (auto fragment : program.getBody()->getOps<FragmentOp>()) {
      fragment.setHomeAttr(stream(model::StreamCompute));
      for (auto op : fragment.getBody()->getOps<InstructionOpInterface>())
        op.setStreamAttr(
            llvm::TypeSwitch<Operation *, FlatSymbolRefAttr>(op)
                .Case<AllReduceOp, AllGatherOp, ReduceScatterOp>(
                    [&](auto op) { return collective(op.getGroupAttr()); })
                .Default(
                    [&](Operation *) { return stream(model::StreamCompute); }));
    }
    auto message = [&](FlatSymbolRefAttr channel, int forward, int backward) {
      auto op = symbols.lookup<ChannelOp>(channel.getValue());
      return stream(op.getDirection() == Direction::forward ? forward
                                                            : backward);
    };
    for (auto list : program.getBody()->getOps<ActionsOp>())
      for (auto action : list.getBody()->getOps<ActionOpInterface>())
        action.setStreamAttr(
            llvm::TypeSwitch<Operation *, FlatSymbolRefAttr>(action)
                .Case([&](LoadOp) { return stream(model::StreamLoad); })
                .Case([&](SendOp op) {
                  return message(op.getChannelAttr(), model::StreamSendForward,
                                 model::StreamSendBackward);
                })
                .Case([&](RecvOp op) {
                  return message(op.getChannelAttr(), model::StreamRecvForward,
                                 model::StreamRecvBackward);
                })
                .Default(
                    [&](Operation *) { return stream(model::StreamCompute); }));
  }
};

} // namespace
