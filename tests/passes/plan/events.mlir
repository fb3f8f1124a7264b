// Events for every hazard between streams, then only those that are needed.
// RUN: reckon-opt %s -plan-insert-events | FileCheck %s --check-prefix=ALL
// RUN: reckon-opt %s -plan-insert-events -plan-elide-events | FileCheck %s --check-prefix=MIN
// RUN: reckon-opt %s -plan-insert-events -verify-plan
// RUN: reckon-opt %s -plan-insert-events -plan-elide-events -verify-plan
// Without events the same program is refused.
// RUN: not reckon-opt %s -verify-plan 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: starts on stream "tp" before the fragment does

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] arena 2048 {
  plan.stream @compute
  plan.stream @tp
  plan.stream @load
  plan.group @tp_ranks axes [tp]
  plan.slot_class @tokens bytes 256 count 1 offset 0 category "activations"
  plan.lane @workspace bytes 1024 offset 256

  // compute: a = 0; tp: a reduced; compute: b = a; c = 0; tp: b reduced.
  //   all: fork for tp; write a -> reduce a; reduce a -> copy; copy -> reduce b;
  //   join. The fork is implied by the first hazard; nothing else is.
  // ALL-LABEL: plan.fragment @f
  // ALL-SAME: events 5
  // ALL: plan.record 0 on @compute
  // ALL: plan.launch "fill_zero"
  // ALL: plan.record 1 on @compute
  // ALL-DAG: plan.wait 0 on @tp
  // ALL-DAG: plan.wait 1 on @tp
  // ALL: plan.all_reduce
  // ALL: plan.record 2 on @tp
  // ALL: plan.wait 2 on @compute
  // ALL: plan.copy
  // ALL: plan.record 3 on @compute
  // ALL: plan.launch "fill_zero"
  // ALL-NOT: plan.wait 2
  // ALL: plan.wait 3 on @tp
  // ALL: plan.all_reduce
  // ALL: plan.record 4 on @tp
  // ALL: plan.wait 4 on @compute
  // MIN-LABEL: plan.fragment @f
  // MIN-SAME: events 4
  // MIN-NEXT: plan.lane_ref
  // MIN: plan.launch "fill_zero"
  // MIN-NEXT: plan.record 0 on @compute
  // MIN-NEXT: plan.wait 0 on @tp
  // MIN-NEXT: plan.all_reduce
  // MIN-NEXT: plan.record 1 on @tp
  // MIN-NEXT: plan.wait 1 on @compute
  // MIN-NEXT: plan.copy
  // MIN-NEXT: plan.record 2 on @compute
  // MIN-NEXT: plan.launch "fill_zero"
  // MIN-NEXT: plan.wait 2 on @tp
  // MIN-NEXT: plan.all_reduce
  // MIN-NEXT: plan.record 3 on @tp
  // MIN-NEXT: plan.wait 3 on @compute
  plan.fragment @f home @compute lane @workspace slots (tokens : @tokens) {
    %a = plan.lane_ref + 0 : !plan.buffer<64xf32>
    %b = plan.lane_ref + 256 : !plan.buffer<64xf32>
    %c = plan.lane_ref + 512 : !plan.buffer<64xf32>
    %t = plan.slot_ref "tokens" + 0 : !plan.buffer<8xi32>
    plan.launch "fill_zero" on @compute outs(%a : !plan.buffer<64xf32>) args [] floats []
    plan.all_reduce sum over @tp_ranks on @tp ins(%a : !plan.buffer<64xf32>) outs(%a : !plan.buffer<64xf32>)
    plan.copy on @compute ins(%a : !plan.buffer<64xf32>) outs(%b : !plan.buffer<64xf32>)
    plan.launch "fill_zero" on @compute outs(%c : !plan.buffer<64xf32>) args [] floats []
    plan.all_reduce sum over @tp_ranks on @tp ins(%b : !plan.buffer<64xf32>) outs(%b : !plan.buffer<64xf32>)
  }
  // Reads its slot only.
  plan.fragment @g home @compute lane @workspace slots (tokens : @tokens) {
    %t = plan.slot_ref "tokens" + 0 : !plan.buffer<8xi32>
    %d = plan.lane_ref + 0 : !plan.buffer<8xi32>
    plan.copy on @compute ins(%t : !plan.buffer<8xi32>) outs(%d : !plan.buffer<8xi32>)
  }

  // One slot for two micro-batches: the second load waits for the first run,
  // and the first load for the last run of the step before. A run waits for its
  // load, on the other stream.
  //   events: 0 load 0, 1 run 0, 2 load 1, 3 run 1
  // Both lists are minimal already: every wait crosses streams once.
  // ALL-LABEL: plan.actions @step events 4
  // ALL: plan.load "0LOAD0" {{.*}} waits [3] records [0]
  // ALL: plan.run "0F0" {{.*}} waits [0] records [1]
  // ALL: plan.load "0LOAD1" {{.*}} waits [1] records [2]
  // ALL: plan.run "0F1" {{.*}} waits [2] records [3]
  // MIN-LABEL: plan.actions @step events 4
  // MIN: plan.load "0LOAD0" {{.*}} waits [3] records [0]
  // MIN: plan.run "0F0" {{.*}} waits [0] records [1]
  // MIN: plan.load "0LOAD1" {{.*}} waits [1] records [2]
  // MIN: plan.run "0F1" {{.*}} waits [2] records [3]
  plan.actions @step {
    plan.load "0LOAD0" [!plan.buffer<8xi32>] on @load microbatch 0 slots (@tokens[0] acquire)
    plan.run "0F0" @g on @compute microbatch 0 slots (@tokens[0] release)
    plan.load "0LOAD1" [!plan.buffer<8xi32>] on @load microbatch 1 slots (@tokens[0] acquire)
    plan.run "0F1" @g on @compute microbatch 1 slots (@tokens[0] release)
  }
}
