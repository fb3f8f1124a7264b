// RUN: reckon-opt -pass-pipeline="builtin.module(train.program(train-insert-optimizer))" \
// RUN:   -split-input-file -verify-diagnostics %s

// No configuration.
// expected-error @+1 {{needs config.optimizer to insert the optimizer}}
train.program @no_config sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// No optimizer in it.
// expected-error @+1 {{needs config.optimizer to insert the optimizer}}
train.program @no_optimizer sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {seed = 7 : i64}} {
  train.microbatch { }
}

// -----

// A number is missing, another is no number: both are named.
// expected-error @+2 {{config.optimizer lacks the number beta2}}
// expected-error @+1 {{config.optimizer lacks the number clip_grad}}
train.program @numbers sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {optimizer = {beta1 = 0.5 : f64,
        eps = 0.125 : f64, weight_decay = 0.75 : f64, clip_grad = "2"}}} {
  train.microbatch { }
}

// -----

// No gradients yet: train-build-backward has to come first.
train.program @no_gradient sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {optimizer = {beta1 = 0.5 : f64,
        beta2 = 0.25 : f64, eps = 0.125 : f64, weight_decay = 0.75 : f64,
        clip_grad = 2.0 : f64}}} {
  // expected-error @+1 {{names no state: @"w#gradient"}}
  train.state @w parameter : tensor<4xf32>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
}
