// Values become buffers, operations instructions. The input is explained in
// Inputs/one-stage.mlir: TP 2, DP 2, ZeRO-1, vocabulary 12 (6 a rank), hidden
// size 4, 8 tokens.
// RUN: reckon-opt %S/Inputs/one-stage.mlir -plan-materialize | FileCheck %s

// The config travels, with the batch beside it.
// CHECK: plan.program @stage0 stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 2, pp = 1]
// CHECK-SAME: global_batch_size = 4 : i64
// CHECK-SAME: micro_batch_size = 1 : i64
// CHECK-SAME: num_micro_batches = 2 : i64
// CHECK-SAME: sequence_length = 8 : i64

// Streams in the order of their numbers; groups of the whole job, small first.
// CHECK: plan.stream @compute
// CHECK-NEXT: plan.stream @tp
// CHECK-NEXT: plan.stream @dp
// CHECK-NEXT: plan.stream @load
// CHECK: plan.group @tp_ranks axes [tp]
// CHECK-NEXT: plan.group @dp_ranks axes [dp]
// CHECK-NEXT: plan.group @world axes [tp, dp, pp]

// 6 * 4 * 4 = 96 bytes; ZeRO blocks of 12 need no padding.
// CHECK: plan.state @w parameter : !plan.buffer<6x4xf32> global [12, 4] box [6 * tp : 6, 0 : 4] bytes 96 replicas [dp] init <normal 2.000000e-02> decay
// 5 elements in 2 blocks of 3: 6 * 4 = 24 bytes instead of 20.
// CHECK-NEXT: plan.state @n parameter : !plan.buffer<5xf32> global [5] box [0 : 5] bytes 24
// CHECK-NEXT: plan.state @"w#gradient" gradient : !plan.buffer<6x4xf32> {{.*}} bytes 96 init <zeros>
// CHECK-NEXT: plan.state @"n#gradient" gradient : {{.*}} bytes 24
// CHECK-NEXT: plan.state @"w#momentum" momentum : !plan.buffer<12xf32> {{.*}} bytes 48 flat [dp] 12
// CHECK-NEXT: plan.state @"n#momentum" momentum : !plan.buffer<3xf32> {{.*}} bytes 12 flat [dp] 3

// Tokens 8 * 4 = 32 bytes, a slot of 256; two saved values of 8 * 4 * 4 = 128
// bytes, each aligned: 512.
// CHECK: plan.slot_class @tokens bytes 256 count 2 category "activations"
// CHECK-NEXT: plan.slot_class @stash bytes 512 count 1 category "activations"
// CHECK-NEXT: plan.slot_class @targets bytes 256 count 2 category "activations"

// The partial embedding, its sum and the saved value share a place in the
// stash. The saved sum is no operand to overwrite: the add has its own place.
// CHECK-LABEL: plan.fragment @forward
// CHECK: [[X:%.*]] = plan.slot_ref "stash" + 0
// CHECK: plan.launch "embedding" {{.*}} outs([[X]] : {{.*}} args [6, 4, 6 * tp]
// CHECK-NEXT: plan.all_reduce sum over @tp_ranks ins([[X]] : {{.*}} outs([[X]]
// CHECK-NEXT: [[Y:%.*]] = plan.slot_ref "stash" + 256
// CHECK-NEXT: plan.launch "add" ins([[X]], [[X]] : {{.*}} outs([[Y]]

// CHECK-LABEL: plan.fragment @backward_first
// CHECK: [[LOGITS:%.*]] = plan.temp logits : <8x6xf32>
// 2 * 8 rows * 6 * 4 = 384 floating-point operations.
// CHECK: plan.launch "linear" {{.*}} outs([[LOGITS]] : {{.*}} args [6, 4] floats [] {flops = 384 : i64}
// CHECK: plan.all_reduce max over @tp_ranks
// All ranks of a tensor-parallel group know the loss: tp 0 counts it.
// CHECK: plan.launch "cross_entropy_loss" {{.*}} args [tp not 0 ? 0 : 1]
// The gradient of the logits takes their place.
// CHECK-NEXT: plan.launch "cross_entropy_grad" ins([[LOGITS]], {{.*}} outs([[LOGITS]] : {{.*}} args [6, 6, 6 * tp] floats [3.125000e-02]
// The first micro-batch overwrites (ACC 0), and where the gradient is made, not
// where the IR accumulates it.
// CHECK-NEXT: [[GW:%.*]] = plan.state_ref @"w#gradient" + 0
// CHECK-NEXT: plan.launch "linear_grad_weight" ins([[LOGITS]], {{.*}} outs([[GW]] : {{.*}} args [6, 4, 0]
// CHECK-NEXT: [[DY:%.*]] = plan.temp
// CHECK-NEXT: plan.launch "linear_grad_input"
// The second operand is an argument of the fragment, so the first gives way.
// CHECK: plan.launch "add" ins([[DY]], {{.*}} outs([[DY]]
// The second gradient of the same state adds even in the first micro-batch.
// CHECK: plan.launch "embedding_grad" {{.*}} outs([[GW]] : {{.*}} args [6, 4, 6 * tp, 1]

// CHECK-LABEL: plan.fragment @backward lane
// CHECK: plan.launch "embedding_grad" {{.*}} args [6, 4, 6 * tp, 1]

// In place on the padded whole: block dp of 12 * 4 = 48 and of 3 * 4 = 12 bytes.
// CHECK-LABEL: plan.fragment @update
// CHECK-NEXT: [[WW:%.*]] = plan.state_ref @"w#gradient" + 0 : <24xf32>
// CHECK-NEXT: [[WB:%.*]] = plan.state_ref @"w#gradient" + 48 * dp : <12xf32>
// CHECK-NEXT: [[NW:%.*]] = plan.state_ref @"n#gradient" + 0 : <6xf32>
// CHECK-NEXT: [[NB:%.*]] = plan.state_ref @"n#gradient" + 12 * dp : <3xf32>
// CHECK-NEXT: plan.reduce_scatter sum over @dp_ranks ins([[WW]], [[NW]] : {{.*}} outs([[WB]], [[NB]] :
// The norm's weights are equal on all tensor ranks.
// CHECK: plan.launch "sum_squares" ins([[WB]] {{.*}} args [1]
// CHECK: plan.launch "sum_squares" ins([[NB]] {{.*}} args [tp not 0 ? 0 : 1]
// CHECK-NEXT: plan.all_reduce sum over @world ins([[M:%.*]] : {{.*}} outs([[M]]
// CHECK-NEXT: plan.launch "clip_factor" outs([[M]] {{.*}} floats [1.000000e+00]
// Without separate main weights the block of the parameter itself is updated.
// CHECK: [[PW:%.*]] = plan.state_ref @w + 48 * dp : <12xf32>
// CHECK: plan.launch "adamw" ins([[WB]], [[M]], {{.*}} outs([[PW]], {{.*}} floats [9.000000e-01, 9.500000e-01, 1.000000e-08, 1.000000e-01]
// CHECK: plan.launch "adamw" {{.*}} floats [9.000000e-01, 9.500000e-01, 1.000000e-08, 0.000000e+00]
// CHECK: plan.all_gather over @dp_ranks ins([[PW]], {{.*}} !plan.buffer<24xf32>, !plan.buffer<6xf32>
// Writing the gathered parameter back needs no copy.
// CHECK-NOT: plan.copy

// CHECK-LABEL: plan.actions @step
// CHECK-NEXT: plan.run "begin" @begin slots ()
// CHECK-NEXT: plan.load "0LOAD0" [!plan.buffer<8xi32>, !plan.buffer<8xi32>] microbatch 0 slots (@tokens[0] acquire, @targets[0] acquire)
// CHECK-NEXT: plan.run "0F0" @forward microbatch 0 slots (@tokens[0], @stash[0] acquire)
// CHECK-NEXT: plan.run "0B0" @backward_first microbatch 0 slots (@tokens[0] release, @stash[0] release, @targets[0] release)
