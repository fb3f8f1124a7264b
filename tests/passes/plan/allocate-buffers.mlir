// Temporaries are packed first-fit by their life; states, slots and the lane
// follow each other in the arena.
// RUN: reckon-opt %s -plan-allocate-buffers | FileCheck %s
// RUN: reckon-opt %s -plan-allocate-buffers=remarks=true -verify-diagnostics

// Arena: @w 96 bytes -> 256; @s 2 slots of 256 -> 256 .. 768; lane 768 ..
// Lives of the temporaries (bytes, aligned): a 256 in 0-1, b 512 in 1-2,
// c 256 in 2-3, d 256 in 3-3.
//   a at 0; b must avoid a: 256 .. 768; c avoids b: 0; d avoids c: 256.
//   768 bytes; at instruction 1 and 2 768 bytes live, so the gap is 0.
// CHECK-LABEL: plan.program @p
// CHECK-SAME: arena 1536
plan.program @p stage 0 mesh [tp = 1, cp = 1, ep = 1, dp = 1, pp = 1] {
  // CHECK: plan.state @w {{.*}} offset 0
  plan.state @w parameter : !plan.buffer<24xf32> global [24] box [0 : 24] bytes 96
  // CHECK: plan.slot_class @s bytes 256 count 2 offset 256
  plan.slot_class @s bytes 256 count 2 category "activations"
  // d is 256 of the lane's 768 bytes and holds the logits.
  // CHECK: plan.lane @workspace bytes 768 offset 768 logits 256
  plan.lane @workspace
  // expected-remark @+1 {{workspace of 768 bytes, lower bound 768, gap 0}}
  plan.fragment @f lane @workspace slots () {
    // CHECK-DAG: [[A:%.*]] = plan.lane_ref + 0 : <64xf32>
    %a = plan.temp : !plan.buffer<64xf32>
    // CHECK-DAG: [[B:%.*]] = plan.lane_ref + 256 : <100xf32>
    %b = plan.temp : !plan.buffer<100xf32>
    // CHECK-DAG: [[C:%.*]] = plan.lane_ref + 0 : <50xf32>
    %c = plan.temp : !plan.buffer<50xf32>
    // CHECK-DAG: [[D:%.*]] = plan.lane_ref + 256 : <1xf32>
    %d = plan.temp logits : !plan.buffer<1xf32>
    // CHECK: plan.launch "fill_zero" outs([[A]]
    plan.launch "fill_zero" outs(%a : !plan.buffer<64xf32>) args [] floats []
    // CHECK: plan.launch "sum_squares" ins([[A]] {{.*}} outs([[B]]
    plan.launch "sum_squares" ins(%a : !plan.buffer<64xf32>) outs(%b : !plan.buffer<100xf32>) args [1] floats []
    // CHECK: plan.launch "sum_squares" ins([[B]] {{.*}} outs([[C]]
    plan.launch "sum_squares" ins(%b : !plan.buffer<100xf32>) outs(%c : !plan.buffer<50xf32>) args [1] floats []
    // CHECK: plan.launch "sum_squares" ins([[C]] {{.*}} outs([[D]]
    plan.launch "sum_squares" ins(%c : !plan.buffer<50xf32>) outs(%d : !plan.buffer<1xf32>) args [1] floats []
  }
}
