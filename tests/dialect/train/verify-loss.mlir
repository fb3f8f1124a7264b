// Rules of the parts of the loss, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// cross_entropy_max: statistics are f32.
%l = "test.value"() : () -> tensor<8x16xbf16>
// expected-error @+1 {{maximum must be f32, got 'tensor<8xbf16>'}}
%0 = train.cross_entropy_max %l : (tensor<8x16xbf16>) -> tensor<8xbf16>

// -----

// cross_entropy_max: logits are activations.
%l = "test.value"() : () -> tensor<8x16xi32>
// expected-error @+1 {{computes in f32 or bf16, got 'tensor<8x16xi32>'}}
%0 = train.cross_entropy_max %l : (tensor<8x16xi32>) -> tensor<8xf32>

// -----

// cross_entropy_sum: targets are ids.
%l = "test.value"() : () -> tensor<8x16xf32>
%m = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{targets must be i32, got 'tensor<8xf32>'}}
%0 = train.cross_entropy_sum %l, %m, %m
    : (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<2x8xf32>

// -----

// cross_entropy_sum: the maximum is f32.
%l = "test.value"() : () -> tensor<8x16xbf16>
%t = "test.value"() : () -> tensor<8xi32>
%m = "test.value"() : () -> tensor<8xbf16>
// expected-error @+1 {{maximum must be f32, got 'tensor<8xbf16>'}}
%0 = train.cross_entropy_sum %l, %t, %m
    : (tensor<8x16xbf16>, tensor<8xi32>, tensor<8xbf16>) -> tensor<2x8xf32>

// -----

// cross_entropy_sum: sums are f32.
%l = "test.value"() : () -> tensor<8x16xbf16>
%t = "test.value"() : () -> tensor<8xi32>
%m = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{sums must be f32, got 'tensor<2x8xbf16>'}}
%0 = train.cross_entropy_sum %l, %t, %m
    : (tensor<8x16xbf16>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xbf16>

// -----

// cross_entropy_sum: a row of sums and a row of targets.
%l = "test.value"() : () -> tensor<8x16xf32>
%t = "test.value"() : () -> tensor<8xi32>
%m = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{result must have 2 rows, got 'tensor<3x8xf32>'}}
%0 = train.cross_entropy_sum %l, %t, %m
    : (tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<3x8xf32>

// -----

// cross_entropy_loss: the scale is 1 / tokens.
%l, %s, %m = "test.value"()
    : () -> (tensor<8x16xf32>, tensor<2x8xf32>, tensor<8xf32>)
%t = "test.value"() : () -> tensor<8xi32>
// expected-error @+1 {{scale must be positive}}
%0 = train.cross_entropy_loss @metrics, %l, %t, %s, %m {scale = 0.0 : f64}
    : (tensor<8x16xf32>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xf32>)
    -> tensor<8xf32>

// -----

// cross_entropy_loss: targets are ids.
%l, %s, %m = "test.value"()
    : () -> (tensor<8x16xf32>, tensor<2x8xf32>, tensor<8xf32>)
// expected-error @+1 {{targets must be i32, got 'tensor<8xf32>'}}
%0 = train.cross_entropy_loss @metrics, %l, %m, %s, %m {scale = 0.125 : f64}
    : (tensor<8x16xf32>, tensor<8xf32>, tensor<2x8xf32>, tensor<8xf32>)
    -> tensor<8xf32>

// -----

// cross_entropy_loss: sums are f32.
%l, %s, %m = "test.value"()
    : () -> (tensor<8x16xbf16>, tensor<2x8xbf16>, tensor<8xf32>)
%t = "test.value"() : () -> tensor<8xi32>
// expected-error @+1 {{sums must be f32, got 'tensor<2x8xbf16>'}}
%0 = train.cross_entropy_loss @metrics, %l, %t, %s, %m {scale = 0.125 : f64}
    : (tensor<8x16xbf16>, tensor<8xi32>, tensor<2x8xbf16>, tensor<8xf32>)
    -> tensor<8xf32>

// -----

// cross_entropy_loss: the maximum is f32.
%l, %s, %m = "test.value"()
    : () -> (tensor<8x16xbf16>, tensor<2x8xf32>, tensor<8xbf16>)
%t = "test.value"() : () -> tensor<8xi32>
// expected-error @+1 {{maximum must be f32, got 'tensor<8xbf16>'}}
%0 = train.cross_entropy_loss @metrics, %l, %t, %s, %m {scale = 0.125 : f64}
    : (tensor<8x16xbf16>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xbf16>)
    -> tensor<8xf32>

// -----

// cross_entropy_loss: the log-sum-exp is f32.
%l, %s, %m = "test.value"()
    : () -> (tensor<8x16xbf16>, tensor<2x8xf32>, tensor<8xf32>)
%t = "test.value"() : () -> tensor<8xi32>
// expected-error @+1 {{log-sum-exp must be f32, got 'tensor<8xbf16>'}}
%0 = train.cross_entropy_loss @metrics, %l, %t, %s, %m {scale = 0.125 : f64}
    : (tensor<8x16xbf16>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xf32>)
    -> tensor<8xbf16>

// -----

// cross_entropy_loss: a row of sums and a row of targets.
%l, %s, %m = "test.value"()
    : () -> (tensor<8x16xf32>, tensor<3x8xf32>, tensor<8xf32>)
%t = "test.value"() : () -> tensor<8xi32>
// expected-error @+1 {{sums must have 2 rows, got 'tensor<3x8xf32>'}}
%0 = train.cross_entropy_loss @metrics, %l, %t, %s, %m {scale = 0.125 : f64}
    : (tensor<8x16xf32>, tensor<8xi32>, tensor<3x8xf32>, tensor<8xf32>)
    -> tensor<8xf32>

// -----

// cross_entropy_loss: the state holds the metrics.
train.program @loss_metrics sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @scalars scalars : tensor<8xf64>
  train.microbatch { }
  train.update {
    %l, %s, %m = "test.value"()
        : () -> (tensor<8x16xf32>, tensor<2x8xf32>, tensor<8xf32>)
    %t = "test.value"() : () -> tensor<8xi32>
    // expected-error @+1 {{must name a state of role metrics, but @scalars has role scalars}}
    %0 = train.cross_entropy_loss @scalars, %l, %t, %s, %m
        {scale = 0.125 : f64}
        : (tensor<8x16xf32>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xf32>)
        -> tensor<8xf32>
  }
}

// -----

// cross_entropy_grad: the scale is the loss's.
%l = "test.value"() : () -> tensor<8x16xf32>
%t = "test.value"() : () -> tensor<8xi32>
%s = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{scale must be positive}}
%0 = train.cross_entropy_grad %l, %t, %s {scale = -1.0 : f64}
    : (tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8x16xf32>

// -----

// cross_entropy_grad: targets are ids.
%l = "test.value"() : () -> tensor<8x16xf32>
%s = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{targets must be i32, got 'tensor<8xf32>'}}
%0 = train.cross_entropy_grad %l, %s, %s {scale = 0.125 : f64}
    : (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8x16xf32>

// -----

// cross_entropy_grad: the log-sum-exp is f32.
%l = "test.value"() : () -> tensor<8x16xbf16>
%t = "test.value"() : () -> tensor<8xi32>
%s = "test.value"() : () -> tensor<8xbf16>
// expected-error @+1 {{log-sum-exp must be f32, got 'tensor<8xbf16>'}}
%0 = train.cross_entropy_grad %l, %t, %s {scale = 0.125 : f64}
    : (tensor<8x16xbf16>, tensor<8xi32>, tensor<8xbf16>) -> tensor<8x16xbf16>

// -----

// cross_entropy_grad: the gradient has the type of the logits, in whose buffer
// it is written.
%l = "test.value"() : () -> tensor<8x16xbf16>
%t = "test.value"() : () -> tensor<8xi32>
%s = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{mixes precisions: 'tensor<8x16xbf16>' and 'tensor<8x16xf32>'}}
%0 = train.cross_entropy_grad %l, %t, %s {scale = 0.125 : f64}
    : (tensor<8x16xbf16>, tensor<8xi32>, tensor<8xf32>) -> tensor<8x16xf32>
