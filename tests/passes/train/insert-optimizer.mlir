// States, order and numbers of the update that train-insert-optimizer adds.
// RUN: reckon-opt -pass-pipeline="builtin.module(train.program(train-insert-optimizer))" \
// RUN:   -split-input-file %s | FileCheck %s

// A bf16 matrix under weight decay and an fp32 norm weight without.
// CHECK-LABEL: train.program @mixed
train.program @mixed sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {optimizer = {beta1 = 0.5 : f64,
        beta2 = 0.25 : f64, eps = 0.125 : f64, weight_decay = 0.75 : f64,
        clip_grad = 2.0 : f64}}} {
  train.state @w parameter decay : tensor<16x4xbf16>
  train.state @norm parameter : tensor<4xf32>
  train.state @"w#gradient" gradient of @w : tensor<16x4xf32>
  train.state @"norm#gradient" gradient of @norm : tensor<4xf32>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
}

// Main weights only where the parameter itself is not fp32; then momentum and
// variance of all, in fp32; the scalars; metrics stay last.
// CHECK:      train.state @"norm#gradient"
// CHECK-NEXT: train.state @"w#main_weight" main_weight of @w : tensor<16x4xf32>
// CHECK-NEXT: train.state @"w#momentum" momentum of @w : tensor<16x4xf32>
// CHECK-NEXT: train.state @"norm#momentum" momentum of @norm : tensor<4xf32>
// CHECK-NEXT: train.state @"w#variance" variance of @w : tensor<16x4xf32>
// CHECK-NEXT: train.state @"norm#variance" variance of @norm : tensor<4xf32>
// CHECK-NEXT: train.state @scalars scalars : tensor<8xf64>
// CHECK-NEXT: train.state @metrics

// The norm is over all gradients, and known before the first parameter moves.
// CHECK:      train.update {
// CHECK-NEXT:   %[[G0:.*]] = train.read @"w#gradient" : tensor<16x4xf32>
// CHECK-NEXT:   %[[G1:.*]] = train.read @"norm#gradient" : tensor<4xf32>
// CHECK-NEXT:   train.sum_squares @metrics, %[[G0]], %[[G1]]
// CHECK-SAME:     : tensor<16x4xf32>, tensor<4xf32>
// CHECK-NEXT:   train.clip_factor @metrics {clip = 2.000000e+00 : f64}
// CHECK-NEXT:   %[[P0:.*]] = train.adamw @w, %[[G0]]
// CHECK-SAME:     metrics @metrics scalars @scalars
// CHECK-SAME:     {beta1 = 5.000000e-01 : f64, beta2 = 2.500000e-01 : f64,
// CHECK-SAME:     eps = 1.250000e-01 : f64, weight_decay = 7.500000e-01 : f64}
// CHECK-SAME:     : (tensor<16x4xf32>) -> tensor<16x4xbf16>
// CHECK-NEXT:   train.write @w, %[[P0]] : tensor<16x4xbf16>
// CHECK-NEXT:   %[[P1:.*]] = train.adamw @norm, %[[G1]]
// CHECK-SAME:     weight_decay = 0.000000e+00 : f64}
// CHECK-SAME:     : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   train.write @norm, %[[P1]] : tensor<4xf32>
// CHECK-NEXT: }
