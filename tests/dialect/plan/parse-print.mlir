// Every op of the plan dialect, read, printed, and read again.
// RUN: reckon-opt %s | reckon-opt | FileCheck %s

// A stage of two, TP 2: x[8,4] times w[6,4] per rank, then one transfer.
//   bytes: w 6*4*4 = 96; stash 8*6*4 = 192; output 8*4*4 = 128
// CHECK-LABEL: plan.program @stage0 stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 2, pp = 2] arena 4096
// CHECK-SAME: config = {name = "tiny"}
plan.program @stage0 stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 2, pp = 2] arena 4096 attributes {config = {name = "tiny"}} {
  // CHECK: plan.stream @compute
  plan.stream @compute
  plan.stream @tp
  plan.stream @dp
  plan.stream @load
  plan.stream @send_forward
  plan.stream @recv_backward
  // CHECK: plan.group @tp_ranks axes [tp]
  plan.group @tp_ranks axes [tp]
  // CHECK: plan.group @ends axes [dp, pp] where [#plan.filter<pp in [0, 1]>]
  plan.group @ends axes [dp, pp] where [#plan.filter<pp in [0, 1]>]
  plan.group @dp_ranks axes [dp]
  // CHECK: plan.channel @forward_0_1 0 forward from 0 to 1
  plan.channel @forward_0_1 0 forward from 0 to 1
  // CHECK: plan.channel @backward_1_0 1 backward from 1 to 0
  plan.channel @backward_1_0 1 backward from 1 to 0
  // The rank with coordinate tp holds rows 6 * tp .. 6 * tp + 5 of 12.
  // CHECK: plan.state @w parameter : !plan.buffer<6x4xf32> global [12, 4] box [6 * tp : 6, 0 : 4] bytes 96 offset 0 replicas [dp] init <normal 2.000000e-02> decay
  plan.state @w parameter : !plan.buffer<6x4xf32> global [12, 4] box [6 * tp : 6, 0 : 4] bytes 96 offset 0 replicas [dp] init <normal 2.000000e-02> decay
  // 24 elements over dp 2: 12 a rank.
  // CHECK: plan.state @"w#momentum" momentum : !plan.buffer<12xf32> global [12, 4] box [6 * tp : 6, 0 : 4] bytes 48 offset 256 flat [dp] 12
  plan.state @"w#momentum" momentum : !plan.buffer<12xf32> global [12, 4] box [6 * tp : 6, 0 : 4] bytes 48 offset 256 flat [dp] 12
  // CHECK: plan.state @rope buffer {{.*}} init <rope 1.000000e+04 1.000000e+00 1.000000e+00 1.000000e+00 0.000000e+00>
  plan.state @rope buffer : !plan.buffer<8x4xf32> global [8, 4] box [0 : 8, 0 : 4] bytes 128 offset 512 init <rope 1.000000e+04 1.000000e+00 1.000000e+00 1.000000e+00 0.000000e+00>
  plan.state @metrics metrics : !plan.buffer<4xf64> global [4] box [0 : 4] bytes 32 offset 768 tie "none"
  // CHECK: plan.slot_class @tokens bytes 256 count 2 offset 1024 category "activations"
  plan.slot_class @tokens bytes 256 count 2 offset 1024 category "activations"
  plan.slot_class @stash bytes 256 count 1 offset 1536 category "activations"
  plan.slot_class @output bytes 256 count 2 offset 1792 category "communication"
  plan.slot_class @grad_in bytes 256 count 1 offset 2304 category "communication"
  // CHECK: plan.lane @workspace bytes 512 offset 2560 logits 256
  plan.lane @workspace bytes 512 offset 2560 logits 256

  // CHECK: plan.fragment @forward home @compute lane @workspace slots (tokens : @tokens, stash : @stash, output : @output) events 2
  plan.fragment @forward home @compute lane @workspace slots (tokens : @tokens, stash : @stash, output : @output) events 2 {
    // CHECK: plan.state_ref @w + 0 : <6x4xf32>
    %w = plan.state_ref @w + 0 : !plan.buffer<6x4xf32>
    // CHECK: plan.state_ref @w + 48 * dp : <12xf32>
    %block = plan.state_ref @w + 48 * dp : !plan.buffer<12xf32>
    %whole = plan.state_ref @w + 0 : !plan.buffer<24xf32>
    %metrics = plan.state_ref @metrics + 0 : !plan.buffer<4xf64>
    // CHECK: plan.slot_ref "tokens" + 0 : <8xi32>
    %t = plan.slot_ref "tokens" + 0 : !plan.buffer<8xi32>
    %s = plan.slot_ref "stash" + 0 : !plan.buffer<8x6xf32>
    %o = plan.slot_ref "output" + 0 : !plan.buffer<8x4xf32>
    // CHECK: plan.lane_ref + 256 : <8x4xf32>
    %x = plan.lane_ref + 256 : !plan.buffer<8x4xf32>
    // CHECK: plan.temp logits : <8x4xf32>
    %y = plan.temp logits : !plan.buffer<8x4xf32>
    // The vocabulary's first row on this rank is 6 * tp.
    %part = plan.lane_ref + 0 : !plan.buffer<12xf32>
    // CHECK: plan.launch "embedding" on @compute ins(%{{.*}}, %{{.*}} : !plan.buffer<8xi32>, !plan.buffer<6x4xf32>) outs(%{{.*}} : !plan.buffer<8x4xf32>) args [6, 4, 6 * tp] floats [] {layer = "embedding"}
    plan.launch "embedding" on @compute ins(%t, %w : !plan.buffer<8xi32>, !plan.buffer<6x4xf32>) outs(%x : !plan.buffer<8x4xf32>) args [6, 4, 6 * tp] floats [] {layer = "embedding"}
    // CHECK: plan.record 0 on @compute
    plan.record 0 on @compute
    // CHECK: plan.wait 0 on @tp
    plan.wait 0 on @tp
    // CHECK: plan.all_reduce sum over @tp_ranks on @tp ins([[X:%.*]] : !plan.buffer<8x4xf32>) outs([[X]] : !plan.buffer<8x4xf32>)
    plan.all_reduce sum over @tp_ranks on @tp ins(%x : !plan.buffer<8x4xf32>) outs(%x : !plan.buffer<8x4xf32>)
    plan.record 1 on @tp
    plan.wait 1 on @compute
    // CHECK: plan.launch "linear" on @compute {{.*}} args [6, 4] floats [] {flops = 384 : i64}
    plan.launch "linear" on @compute ins(%x, %w : !plan.buffer<8x4xf32>, !plan.buffer<6x4xf32>) outs(%s : !plan.buffer<8x6xf32>) args [6, 4] floats [] {flops = 384 : i64}
    // CHECK: plan.copy on @compute ins
    plan.copy on @compute ins(%x : !plan.buffer<8x4xf32>) outs(%o : !plan.buffer<8x4xf32>)
    // The rank's 12 of the state's 24 elements.
    // CHECK: plan.copy on @compute ins({{.*}}) outs({{.*}}) {source_offset = #plan.expr<48 * dp>}
    plan.copy on @compute ins(%whole : !plan.buffer<24xf32>) outs(%part : !plan.buffer<12xf32>) {source_offset = #plan.expr<48 * dp>}
    // CHECK: plan.reduce_scatter sum over @dp_ranks on @dp
    plan.reduce_scatter sum over @dp_ranks on @dp ins(%whole : !plan.buffer<24xf32>) outs(%block : !plan.buffer<12xf32>)
    // CHECK: plan.all_gather over @dp_ranks on @dp
    plan.all_gather over @dp_ranks on @dp ins(%block : !plan.buffer<12xf32>) outs(%whole : !plan.buffer<24xf32>)
    // Only the rank at tp 0 and dp 0 counts.
    // CHECK: plan.launch "sum_squares" {{.*}} args [tp not 0 ? 0 : dp not 0 ? 0 : 1] floats []
    plan.launch "sum_squares" on @compute ins(%block : !plan.buffer<12xf32>) outs(%metrics : !plan.buffer<4xf64>) args [tp not 0 ? 0 : dp not 0 ? 0 : 1] floats []
    // CHECK: plan.launch "clip_factor" on @compute outs({{.*}}) args [] floats [1.000000e+00]
    plan.launch "clip_factor" on @compute outs(%metrics : !plan.buffer<4xf64>) args [] floats [1.000000e+00]
  }

  // CHECK: plan.actions @step events 2
  plan.actions @step events 2 {
    // CHECK: plan.load "0LOAD0" [!plan.buffer<8xi32>] on @load microbatch 0 slots (@tokens[0] acquire) records [0]
    plan.load "0LOAD0" [!plan.buffer<8xi32>] on @load microbatch 0 slots (@tokens[0] acquire) records [0]
    // CHECK: plan.run "0F0" @forward on @compute microbatch 0 slots (@tokens[0] release, @stash[0] acquire release, @output[1] acquire) waits [0] records [1]
    plan.run "0F0" @forward on @compute microbatch 0 slots (@tokens[0] release, @stash[0] acquire release, @output[1] acquire) waits [0] records [1]
    // CHECK: plan.send "0SEND_F0" @forward_0_1 [!plan.buffer<8x4xf32>] on @send_forward microbatch 0 slots (@output[1] release) waits [1]
    plan.send "0SEND_F0" @forward_0_1 [!plan.buffer<8x4xf32>] on @send_forward microbatch 0 slots (@output[1] release) waits [1]
    // CHECK: plan.recv "0RECV_B0" @backward_1_0 [!plan.buffer<8x4xf32>] on @recv_backward microbatch 0 slots (@grad_in[0] acquire release)
    plan.recv "0RECV_B0" @backward_1_0 [!plan.buffer<8x4xf32>] on @recv_backward microbatch 0 slots (@grad_in[0] acquire release)
  }
}
