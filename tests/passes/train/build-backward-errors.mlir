// RUN: reckon-opt -pass-pipeline="builtin.module(train.program(train-build-backward))" \
// RUN:   -allow-unregistered-dialect -split-input-file -verify-diagnostics %s

// The layer's result does not depend on its input, so what comes before it
// would never learn.
train.program @no_path sequence(4) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<4x4xf32>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %x = "test.value"() : () -> tensor<4x4xf32>
    // expected-error @+1 {{no gradient reaches its input}}
    %y = train.layer "layers.0" (%x) {
    ^bb0(%n: tensor<4x4xf32>):
      %w = train.read @w : tensor<4x4xf32>
      %s = train.add %w, %w
          : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      train.yield %s : tensor<4x4xf32>
    } : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %e = train.layer "head" (%y) {
    ^bb0(%a: tensor<4x4xf32>):
      %targets, %s, %m = "test.value"()
          : () -> (tensor<4xi32>, tensor<2x4xf32>, tensor<4xf32>)
      %e = train.cross_entropy_loss @metrics, %a, %targets, %s, %m
          {scale = 0.25 : f64} : (tensor<4x4xf32>, tensor<4xi32>,
              tensor<2x4xf32>, tensor<4xf32>) -> tensor<4xf32>
      train.yield %e : tensor<4xf32>
    } : (tensor<4x4xf32>) -> tensor<4xf32>
  }
}
