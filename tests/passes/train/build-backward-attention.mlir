// A layer of attention and of SwiGLU: what is saved, in the order of
// definition, and how the gradients of shared inputs are summed. One sequence
// of 4 tokens, 2 query heads over 1 key-value head of 2 columns.
// RUN: reckon-opt -pass-pipeline="builtin.module(train.program(train-build-backward))" \
// RUN:   -allow-unregistered-dialect %s | FileCheck %s

// CHECK-LABEL: train.program @attention
train.program @attention sequence(4) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @wq parameter : tensor<4x4xf32>
  train.state @wk parameter : tensor<2x4xf32>
  train.state @wv parameter : tensor<2x4xf32>
  train.state @table buffer : tensor<4x2xf32>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %x = "test.value"() : () -> tensor<4x4xf32>
    // Saved: x (an input), then in the order of definition k after its
    // rotation, v, q after its rotation, o and lse. The rotation table is a
    // state and is read again; q and k before rotation are not saved.
    // CHECK:      %[[OUT:.*]]:6 = train.layer "layers.0"(%[[IN:.*]]) {
    // CHECK:        train.read @wv
    // CHECK-NEXT:   %[[V:.*]] = train.linear
    // CHECK:        %[[QR:.*]] = train.rope {{.*}} -> tensor<4x4xf32>
    // CHECK:        %[[KR:.*]] = train.rope {{.*}} -> tensor<4x2xf32>
    // CHECK:        %o, %lse = train.attention %[[QR]], %[[KR]], %[[V]]
    // CHECK:        train.yield %o, %[[V]], %[[QR]], %[[KR]], %o, %lse
    %y = train.layer "layers.0" (%x) {
    ^bb0(%n: tensor<4x4xf32>):
      %wq = train.read @wq : tensor<4x4xf32>
      %q = train.linear %n, %wq
          : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %wk = train.read @wk : tensor<2x4xf32>
      %k = train.linear %n, %wk
          : (tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<4x2xf32>
      %wv = train.read @wv : tensor<2x4xf32>
      %v = train.linear %n, %wv
          : (tensor<4x4xf32>, tensor<2x4xf32>) -> tensor<4x2xf32>
      %t = train.read @table : tensor<4x2xf32>
      %qr = train.rope %q, %t {head_dim = 2 : i64, sequence_length = 4 : i64}
          : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x4xf32>
      %kr = train.rope %k, %t {head_dim = 2 : i64, sequence_length = 4 : i64}
          : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
      %o, %lse = train.attention %qr, %kr, %v
          {head_dim = 2 : i64, sequence_length = 4 : i64}
          : (tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
          -> (tensor<4x4xf32>, tensor<1x2x4xf32>)
      train.yield %o : tensor<4x4xf32>
    } : (tensor<4x4xf32>) -> tensor<4x4xf32>
    // A second layer, so that a cotangent reaches the first.
    %z = train.layer "head" (%y) {
    ^bb0(%a: tensor<4x4xf32>):
      %l, %targets, %s, %m = "test.value"() : () -> (tensor<4x4xf32>,
          tensor<4xi32>, tensor<2x4xf32>, tensor<4xf32>)
      %e = train.cross_entropy_loss @metrics, %a, %targets, %s, %m
          {scale = 0.25 : f64} : (tensor<4x4xf32>, tensor<4xi32>,
              tensor<2x4xf32>, tensor<4xf32>) -> tensor<4xf32>
      train.yield %e : tensor<4xf32>
    } : (tensor<4x4xf32>) -> tensor<4xf32>
  }
}

// Attention's gradient takes everything back in one go; a rotation goes back
// by the inverse rotation; n feeds three projections, so its cotangents are
// added twice: v first (it was defined last), then k, then q.
// CHECK:      train.layer_grad "layers.0"
// CHECK-NEXT: ^bb0(%[[DY:arg.]]: tensor<4x4xf32>, %[[N:arg.]]: tensor<4x4xf32>,
// CHECK-SAME:   %[[SV:arg.]]: tensor<4x2xf32>, %[[SQ:arg.]]: tensor<4x4xf32>,
// CHECK-SAME:   %[[SK:arg.]]: tensor<4x2xf32>, %[[SO:arg.]]: tensor<4x4xf32>,
// CHECK-SAME:   %[[SL:arg.]]: tensor<1x2x4xf32>):
// CHECK-NEXT:   %dq, %dk, %dv = train.attention_grad %[[DY]], %[[SQ]], %[[SK]],
// CHECK-SAME:     %[[SV]], %[[SO]], %[[SL]]
// CHECK-NEXT:   %[[T:.*]] = train.read @table
// CHECK-NEXT:   %[[DK:.*]] = train.rope %dk, %[[T]]
// CHECK-SAME:     {head_dim = 2 : i64, inverse, sequence_length = 4 : i64}
// CHECK-NEXT:   %[[DQ:.*]] = train.rope %dq, %[[T]]
// CHECK-SAME:     {head_dim = 2 : i64, inverse, sequence_length = 4 : i64}
// CHECK-NEXT:   %[[DWV:.*]] = train.linear_grad_weight %dv, %[[N]]
// CHECK-NEXT:   train.accumulate @"wv#gradient", %[[DWV]]
// CHECK:        %[[NV:.*]] = train.linear_grad_input %dv
// CHECK-NEXT:   %[[DWK:.*]] = train.linear_grad_weight %[[DK]], %[[N]]
// CHECK-NEXT:   train.accumulate @"wk#gradient", %[[DWK]]
// CHECK:        %[[NK:.*]] = train.linear_grad_input %[[DK]]
// CHECK-NEXT:   %[[NVK:.*]] = train.add %[[NV]], %[[NK]]
// CHECK-NEXT:   %[[DWQ:.*]] = train.linear_grad_weight %[[DQ]], %[[N]]
// CHECK-NEXT:   train.accumulate @"wq#gradient", %[[DWQ]]
// CHECK:        %[[NQ:.*]] = train.linear_grad_input %[[DQ]]
// CHECK-NEXT:   %[[DN:.*]] = train.add %[[NVK]], %[[NQ]]
// CHECK-NEXT:   train.yield %[[DN]]
