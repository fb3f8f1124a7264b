// Kernels on compute, tensor-parallel collectives on tp, others on dp, and a
// stream for loads and each direction of messages.
// RUN: reckon-opt %s -plan-assign-streams | FileCheck %s

plan.program @p stage 1 mesh [tp = 2, cp = 1, ep = 1, dp = 2, pp = 3] {
  plan.stream @compute
  plan.stream @tp
  plan.stream @dp
  plan.stream @load
  plan.stream @send_forward
  plan.stream @recv_forward
  plan.stream @send_backward
  plan.stream @recv_backward
  plan.group @tp_ranks axes [tp]
  plan.group @dp_ranks axes [dp]
  plan.group @world axes [tp, dp, pp]
  plan.channel @forward_0_1 0 forward from 0 to 1
  plan.channel @backward_1_0 1 backward from 1 to 0
  plan.channel @forward_1_2 2 forward from 1 to 2
  plan.channel @backward_2_1 3 backward from 2 to 1
  plan.slot_class @s bytes 256 count 1 category "communication"
  plan.lane @workspace
  // CHECK: plan.fragment @f home @compute
  plan.fragment @f lane @workspace slots () {
    %a = plan.temp : !plan.buffer<64xf32>
    %b = plan.temp : !plan.buffer<32xf32>
    // CHECK: plan.launch "fill_zero" on @compute
    plan.launch "fill_zero" outs(%a : !plan.buffer<64xf32>) args [] floats []
    // CHECK: plan.all_reduce sum over @tp_ranks on @tp
    plan.all_reduce sum over @tp_ranks ins(%a : !plan.buffer<64xf32>) outs(%a : !plan.buffer<64xf32>)
    // CHECK: plan.reduce_scatter sum over @dp_ranks on @dp
    plan.reduce_scatter sum over @dp_ranks ins(%a : !plan.buffer<64xf32>) outs(%b : !plan.buffer<32xf32>)
    // CHECK: plan.all_gather over @dp_ranks on @dp
    plan.all_gather over @dp_ranks ins(%b : !plan.buffer<32xf32>) outs(%a : !plan.buffer<64xf32>)
    // CHECK: plan.all_reduce sum over @world on @dp
    plan.all_reduce sum over @world ins(%a : !plan.buffer<64xf32>) outs(%a : !plan.buffer<64xf32>)
    // CHECK: plan.copy on @compute
    plan.copy ins(%b : !plan.buffer<32xf32>) outs(%b : !plan.buffer<32xf32>)
  }
  plan.actions @step {
    // CHECK: plan.run "begin" @f on @compute
    plan.run "begin" @f slots ()
    // CHECK: plan.load {{.*}} on @load
    plan.load "1LOAD0" [!plan.buffer<8xi32>] slots (@s[0])
    // CHECK: plan.recv "1RECV_F0" {{.*}} on @recv_forward
    plan.recv "1RECV_F0" @forward_0_1 [!plan.buffer<8xi32>] slots (@s[0])
    // CHECK: plan.send "1SEND_F0" {{.*}} on @send_forward
    plan.send "1SEND_F0" @forward_1_2 [!plan.buffer<8xi32>] slots (@s[0])
    // CHECK: plan.recv "1RECV_B0" {{.*}} on @recv_backward
    plan.recv "1RECV_B0" @backward_2_1 [!plan.buffer<8xi32>] slots (@s[0])
    // CHECK: plan.send "1SEND_B0" {{.*}} on @send_backward
    plan.send "1SEND_B0" @backward_1_0 [!plan.buffer<8xi32>] slots (@s[0])
  }
}
