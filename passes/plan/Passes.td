//===- Passes.td - the passes of level 4, in the order in which they run --===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PLAN_PASSES_TD
#define RECKON_PASSES_PLAN_PASSES_TD

include "mlir/Pass/PassBase.td"

def Materialize : Pass<"plan-materialize", "mlir::ModuleOp"> {
  let summary = "turn values into buffers and operations into instructions";
  let description = [{
    Replaces `pipe.program` by one `plan.program` per stage. A value becomes
    bytes of a state, of a bound slot, or of the lane (`plan.temp`, not placed
    yet). A result takes over its operand's buffer where the kernel works in
    place and the operand is dead. A weight gradient and its accumulation
    become one kernel that overwrites in the first micro-batch and adds in the
    others.

    Before:
    ```mlir
    %dw = train.linear_grad_weight %dy, %x : ...
    train.accumulate @"w#gradient", %dw : tensor<32x64xf32>
    ```
    After:
    ```mlir
    %0 = plan.state_ref @"w#gradient" + 0 : <32x64xf32>
    plan.launch "linear_grad_weight" ins(%dy, %x : ...) outs(%0 : ...)
        args [32, 64, 1] floats []
    ```
  }];
  let dependentDialects = ["::reckon::planir::PlanDialect"];
}

def AssignStreams : Pass<"plan-assign-streams", "::reckon::planir::ProgramOp"> {
  let summary = "give every instruction and action its stream";
  let description = [{
    Kernels and copies run on `compute`, which is every fragment's home;
    collectives within a tensor-parallel group on `tp`, all others on `dp`.
    Loads and the four directions of messages have a stream each, so that a
    send that waits for its receiver holds nothing else up.
  }];
}

def AllocateBuffers : Pass<"plan-allocate-buffers",
                           "::reckon::planir::ProgramOp"> {
  let summary = "place every buffer in the arena";
  let description = [{
    Packs each fragment's `plan.temp` buffers first-fit by their life in program
    order, sizes the lane by the largest fragment, and lays out states, slots
    and lanes with the function that the planner counts memory by. Emits a
    remark with the gap to the lower bound, the most bytes that live at once.

    Before:
    ```mlir
    %0 = plan.temp : <128x64xf32>
    ```
    After:
    ```mlir
    %0 = plan.lane_ref + 32768 : <128x64xf32>
    ```
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "emit a remark per fragment with its workspace and lower bound">
  ];
}

def InsertEvents : Pass<"plan-insert-events", "::reckon::planir::ProgramOp"> {
  let summary = "order streams wherever they touch the same bytes";
  let description = [{
    Obviously correct, not minimal. Inside a fragment other streams start behind
    an event of the home stream and the home stream waits for them at the end;
    between two instructions on different streams of which one writes bytes that
    the other touches, the later one waits for the earlier one. Of several
    earlier instructions on one stream the last stands for all. In an action
    list the same holds for slots, over two consecutive steps.
  }];
}

def ElideEvents : Pass<"plan-elide-events", "::reckon::planir::ProgramOp"> {
  let summary = "drop waits that other waits imply";
  let description = [{
    Transitive reduction: a wait goes when its stream is ordered behind the
    event without it. Records that nobody waits for go too. Removing this pass
    never changes results.
  }];
}

def VerifyPlan : Pass<"verify-plan", "::reckon::planir::ProgramOp"> {
  let summary = "check a finished plan again, by itself";
  let description = [{
    Knows nothing of how events were inserted: computes what each instruction
    is ordered behind with vector clocks, over three consecutive steps for
    action lists, and reports every pair on different streams that touches the
    same bytes unordered. Also: every buffer has a place, buffers that live at
    the same time are apart, slots are acquired, used and released in turn.
  }];
}

#endif // RECKON_PASSES_PLAN_PASSES_TD
