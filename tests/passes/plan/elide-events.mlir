// Hand-written events: what plan-elide-events drops, and what it leaves alone.
// RUN: reckon-opt %s -plan-elide-events | FileCheck %s
// RUN: reckon-opt %s -plan-elide-events -verify-plan

plan.program @p stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 1, pp = 1] arena 1024 {
  plan.stream @compute
  plan.stream @tp
  plan.stream @load
  plan.group @tp_ranks axes [tp]
  plan.lane @workspace bytes 1024 offset 0

  // The fork (event 0) is implied by event 1, which is recorded later on the
  // same stream. Nobody waits for event 3.
  // CHECK-LABEL: plan.fragment @implied
  // CHECK-SAME: events 2
  // CHECK-NEXT: plan.lane_ref
  // CHECK-NEXT: plan.launch
  // CHECK-NEXT: plan.record 0 on @compute
  // CHECK-NEXT: plan.wait 0 on @tp
  // CHECK-NEXT: plan.all_reduce
  // CHECK-NEXT: plan.record 1 on @tp
  // CHECK-NEXT: plan.wait 1 on @compute
  // CHECK-NEXT: }
  plan.fragment @implied home @compute lane @workspace slots () events 4 {
    %a = plan.lane_ref + 0 : !plan.buffer<64xf32>
    plan.record 0 on @compute
    plan.wait 0 on @tp
    plan.launch "fill_zero" on @compute outs(%a : !plan.buffer<64xf32>) args [] floats []
    plan.record 1 on @compute
    plan.wait 1 on @tp
    plan.all_reduce sum over @tp_ranks on @tp ins(%a : !plan.buffer<64xf32>) outs(%a : !plan.buffer<64xf32>)
    plan.record 2 on @tp
    plan.record 3 on @tp
    plan.wait 2 on @compute
  }

  // Event 1 relays event 0 over a stream that has no work of its own. The pass
  // cannot express that, so it leaves the fragment as it is.
  // CHECK-LABEL: plan.fragment @relay
  // CHECK-SAME: events 3
  // CHECK: plan.wait 0 on @tp
  // CHECK-NEXT: plan.record 1 on @tp
  // CHECK-NEXT: plan.wait 1 on @load
  // CHECK-NEXT: plan.copy on @load
  plan.fragment @relay home @compute lane @workspace slots () events 3 {
    %a = plan.lane_ref + 0 : !plan.buffer<64xf32>
    %b = plan.lane_ref + 256 : !plan.buffer<64xf32>
    plan.launch "fill_zero" on @compute outs(%a : !plan.buffer<64xf32>) args [] floats []
    plan.record 0 on @compute
    plan.wait 0 on @tp
    plan.record 1 on @tp
    plan.wait 1 on @load
    plan.copy on @load ins(%a : !plan.buffer<64xf32>) outs(%b : !plan.buffer<64xf32>)
    plan.record 2 on @load
    plan.wait 2 on @compute
  }
}
