// What verify-train refuses, one rule per chunk. 8 values in a parameter.
// RUN: reckon-opt -pass-pipeline="builtin.module(train.program(verify-train))" \
// RUN:   -split-input-file -verify-diagnostics %s

// All is well: no diagnostic.
train.program @good sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.state @"w#gradient" gradient of @w : tensor<8xf32>
  train.state @"w#momentum" momentum of @w : tensor<8xf32>
  train.state @"w#variance" variance of @w : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    %y = train.layer "a" (%t) {
    ^bb0(%x: tensor<8xi32>):
      %w = train.read @w : tensor<8xf32>
      train.yield %w : tensor<8xf32>
    } : (tensor<8xi32>) -> tensor<8xf32>
    train.layer_grad "a" (%y) {
    ^bb0(%x: tensor<8xf32>):
      train.accumulate @"w#gradient", %x : tensor<8xf32>
      train.yield
    } : (tensor<8xf32>) -> ()
  }
  train.update {
    %g = train.read @"w#gradient" : tensor<8xf32>
    train.sum_squares @metrics, %g : tensor<8xf32>
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
    train.write @w, %p : tensor<8xf32>
  }
}

// -----

// A parameter that no gradient reaches.
train.program @never sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{must be accumulated, counted in the norm and updated once each, got 0, 0 and 0}}
  train.state @w parameter : tensor<8xf32>
  train.microbatch { }
}

// -----

// Accumulated twice: the second kernel would overwrite the first, because in
// the first micro-batch of a step kernels store instead of adding.
train.program @accumulated_twice sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{updated once each, got 2, 1 and 1}}
  train.state @w parameter : tensor<8xf32>
  train.state @"w#gradient" gradient of @w : tensor<8xf32>
  train.state @"w#momentum" momentum of @w : tensor<8xf32>
  train.state @"w#variance" variance of @w : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer_grad "a" (%t) {
    ^bb0(%x: tensor<8xi32>):
      %w = train.read @w : tensor<8xf32>
      train.accumulate @"w#gradient", %w : tensor<8xf32>
      train.accumulate @"w#gradient", %w : tensor<8xf32>
      train.yield
    } : (tensor<8xi32>) -> ()
  }
  train.update {
    %g = train.read @"w#gradient" : tensor<8xf32>
    train.sum_squares @metrics, %g : tensor<8xf32>
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// Left out of the norm: clipping would use too small a norm.
train.program @not_in_norm sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{updated once each, got 1, 0 and 1}}
  train.state @w parameter : tensor<8xf32>
  train.state @"w#gradient" gradient of @w : tensor<8xf32>
  train.state @"w#momentum" momentum of @w : tensor<8xf32>
  train.state @"w#variance" variance of @w : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer_grad "a" (%t) {
    ^bb0(%x: tensor<8xi32>):
      %w = train.read @w : tensor<8xf32>
      train.accumulate @"w#gradient", %w : tensor<8xf32>
      train.yield
    } : (tensor<8xi32>) -> ()
  }
  train.update {
    %g = train.read @"w#gradient" : tensor<8xf32>
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// Updated with something that is not its gradient.
train.program @wrong_gradient sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{updated once each, got 1, 1 and 0}}
  train.state @w parameter : tensor<8xf32>
  train.state @"w#gradient" gradient of @w : tensor<8xf32>
  train.state @"w#momentum" momentum of @w : tensor<8xf32>
  train.state @"w#variance" variance of @w : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer_grad "a" (%t) {
    ^bb0(%x: tensor<8xi32>):
      %w = train.read @w : tensor<8xf32>
      train.accumulate @"w#gradient", %w : tensor<8xf32>
      train.yield
    } : (tensor<8xi32>) -> ()
  }
  train.update {
    %g = train.read @"w#gradient" : tensor<8xf32>
    train.sum_squares @metrics, %g : tensor<8xf32>
    %m = train.read @"w#momentum" : tensor<8xf32>
    %p = train.adamw @w, %m metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// A saved value that nobody reads would take memory for nothing.
train.program @unused sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @table buffer : tensor<8xf32>
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    // expected-error @+1 {{result 1 is saved but never read}}
    %y, %s = train.layer "a" (%t) {
    ^bb0(%x: tensor<8xi32>):
      %w = train.read @table : tensor<8xf32>
      train.yield %w, %w : tensor<8xf32>, tensor<8xf32>
    } : (tensor<8xi32>) -> (tensor<8xf32>, tensor<8xf32>)
    train.layer_grad "a" (%y) {
    ^bb0(%x: tensor<8xf32>):
      train.yield
    } : (tensor<8xf32>) -> ()
  }
}

// -----

// The backward goes through the layers from the last to the first.
// expected-error @+1 {{layer gradients do not mirror the layers in reverse}}
train.program @order sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %t = train.input tokens : tensor<8xi32>
    train.layer "a" (%t) {
    ^bb0(%x: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer "b" (%t) {
    ^bb0(%x: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer_grad "a" (%t) {
    ^bb0(%x: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
    train.layer_grad "b" (%t) {
    ^bb0(%x: tensor<8xi32>):
      train.yield
    } : (tensor<8xi32>) -> ()
  }
}
