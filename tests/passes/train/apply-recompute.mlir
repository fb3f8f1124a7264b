// What a recomputed layer saves and what its backward computes again. The
// layer is that of build-backward.mlir: norm, projection, residual.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(train-build-backward,train-apply-recompute{mode=full}))" \
// RUN:   %s | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(train-build-backward,train-apply-recompute{mode=none}))" \
// RUN:   %s > %t.none
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(train-build-backward))" \
// RUN:   %s | diff - %t.none
// RUN: not reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(train-apply-recompute{mode=half}))" \
// RUN:   %s 2>&1 | FileCheck %s --check-prefix=MODE

// MODE: 'train.program' op recompute mode must be none or full, got half

// CHECK-LABEL: train.program @tiny
train.program @tiny sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @norm parameter : tensor<4xf32>
  train.state @proj parameter : tensor<4x4xf32>
  train.state @head parameter : tensor<4x4xf32>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %x0, %targets = "test.value"() : () -> (tensor<8x4xf32>, tensor<8xi32>)
    // The layer has its activation as its only result: the saved n is gone.
    // CHECK:      %[[X0:.*]]:2 = "test.value"()
    // CHECK-NEXT: %[[X1:.*]] = train.layer "layers.0"(%[[X0]]#0)
    // CHECK:        %[[Y:.*]] = train.add
    // CHECK-NEXT:   train.yield %[[Y]] : tensor<8x4xf32>
    // CHECK-NEXT: } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %x1 = train.layer "layers.0" (%x0) {
    ^bb0(%x: tensor<8x4xf32>):
      %nw = train.read @norm : tensor<4xf32>
      %n = train.rms_norm %x, %nw {eps = 1.0e-5 : f64}
          : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
      %w = train.read @proj : tensor<4x4xf32>
      %h = train.linear %n, %w
          : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      %y = train.add %x, %h
          : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %y : tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    // The head keeps what it saves: it runs once, backward right behind.
    // CHECK:      %[[HEAD:.*]]:2 = train.layer "head"(%[[X1]], %[[X0]]#1)
    // CHECK:        train.yield {{.*}} : tensor<8x4xf32>, tensor<8xf32>
    train.layer "head" (%x1, %targets) {
    ^bb0(%x: tensor<8x4xf32>, %t: tensor<8xi32>):
      %w = train.read @head : tensor<4x4xf32>
      %l = train.linear %x, %w
          : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      %s, %m = "test.value"() : () -> (tensor<2x8xf32>, tensor<8xf32>)
      %lse = train.cross_entropy_loss @metrics, %l, %t, %s, %m
          {scale = 0.125 : f64} : (tensor<8x4xf32>, tensor<8xi32>,
              tensor<2x8xf32>, tensor<8xf32>) -> tensor<8xf32>
      train.yield
    } : (tensor<8x4xf32>, tensor<8xi32>) -> ()
    // CHECK:      %[[DX1:.*]] = train.layer_grad "head"(%[[X1]], %[[X0]]#1,
    // CHECK-SAME:   %[[HEAD]]#0, %[[HEAD]]#1)

    // The layer's backward has two inputs, cotangent and layer input, and
    // begins with the norm. Projection and residual sum are not computed
    // again: nothing saved depends on them. Then the backward as it was.
    // CHECK:      train.layer_grad "layers.0"(%[[DX1]], %[[X0]]#0) {
    // CHECK-NEXT: ^bb0(%[[DY:arg.]]: tensor<8x4xf32>,
    // CHECK-SAME:   %[[X:arg.]]: tensor<8x4xf32>):
    // CHECK-NEXT:   %[[NW:.*]] = train.read @norm
    // CHECK-NEXT:   %[[N:.*]] = train.rms_norm %[[X]], %[[NW]]
    // CHECK-NEXT:   %[[DW:.*]] = train.linear_grad_weight %[[DY]], %[[N]]
    // CHECK-NEXT:   train.accumulate @"proj#gradient", %[[DW]]
    // CHECK-NEXT:   %[[W:.*]] = train.read @proj
    // CHECK-NEXT:   %[[DN:.*]] = train.linear_grad_input %[[DY]], %[[W]]
    // CHECK-NEXT:   train.rms_norm_grad_weight %[[DN]], %[[X]]
    // CHECK-NEXT:   train.accumulate @"norm#gradient"
    // CHECK-NEXT:   %[[NW2:.*]] = train.read @norm
    // CHECK-NEXT:   train.rms_norm_grad_input %[[DN]], %[[X]], %[[NW2]]
    // CHECK-NOT:    train.linear %
    // CHECK:      } : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  }
}
