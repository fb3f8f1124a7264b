// Rules of the operations that accumulate and update, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// accumulate: the state is a gradient.
train.program @accumulate_role sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.microbatch { }
  train.update {
    %g = "test.value"() : () -> tensor<8xf32>
    // expected-error @+1 {{must name a state of role gradient, but @w has role parameter}}
    train.accumulate @w, %g : tensor<8xf32>
  }
}

// -----

// accumulate: the value has the state's type.
train.program @accumulate_type sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.state @"w#gradient" gradient of @w : tensor<8xf32>
  train.microbatch { }
  train.update {
    %g = "test.value"() : () -> tensor<4xf32>
    // expected-error @+1 {{has 'tensor<4xf32>', but state @"w#gradient" is 'tensor<8xf32>'}}
    train.accumulate @"w#gradient", %g : tensor<4xf32>
  }
}

// -----

// accumulate: sums are kept in f32.
%g = "test.value"() : () -> tensor<8xbf16>
// expected-error @+1 {{accumulated gradient must be f32, got 'tensor<8xbf16>'}}
train.accumulate @g, %g : tensor<8xbf16>

// -----

// sum_squares: the state holds the metrics.
train.program @norm_role sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.microbatch { }
  train.update {
    %g = train.read @w : tensor<8xf32>
    // expected-error @+1 {{must name a state of role metrics, but @w has role parameter}}
    train.sum_squares @w, %g : tensor<8xf32>
  }
}

// -----

// sum_squares: gradients are f32.
%g = "test.value"() : () -> tensor<8xbf16>
// expected-error @+1 {{gradient must be f32, got 'tensor<8xbf16>'}}
train.sum_squares @metrics, %g : tensor<8xbf16>

// -----

// sum_squares: one list of axes per value.
%g = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{has 1 entries in replica_axes for 2 values}}
train.sum_squares @metrics, %g, %g {replica_axes = [["dp"]]}
    : tensor<8xf32>, tensor<8xf32>

// -----

// sum_squares: an entry is a list.
%g = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{replica_axes must hold lists of axis names, got ["dp"]}}
train.sum_squares @metrics, %g {replica_axes = ["dp"]} : tensor<8xf32>

// -----

// clip_factor: the state holds the metrics.
train.program @clip_role sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @scalars scalars : tensor<8xf64>
  train.microbatch { }
  train.update {
    // expected-error @+1 {{must name a state of role metrics, but @scalars has role scalars}}
    train.clip_factor @scalars {clip = 1.0 : f64}
  }
}

// -----

// adamw: the first state is a parameter.
train.program @adamw_parameter sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
  train.update {
    %g = "test.value"() : () -> tensor<8xf32>
    // expected-error @+1 {{must name a state of role parameter, but @metrics has role metrics}}
    %p = train.adamw @metrics, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// adamw: metrics and scalars are not to be mixed up.
train.program @adamw_metrics sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
  train.update {
    %g = train.read @w : tensor<8xf32>
    // expected-error @+1 {{must name a state of role metrics, but @scalars has role scalars}}
    %p = train.adamw @w, %g metrics @scalars scalars @metrics
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// adamw: the scalars are the step's numbers.
train.program @adamw_scalars sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
  train.update {
    %g = train.read @w : tensor<8xf32>
    // expected-error @+1 {{must name a state of role scalars, but @metrics has role metrics}}
    %p = train.adamw @w, %g metrics @metrics scalars @metrics
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// adamw: the new value has the parameter's precision and the gradient's shape.
train.program @adamw_result sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xbf16>
  train.state @"w#momentum" momentum of @w : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
  train.update {
    %g = train.read @"w#momentum" : tensor<8xf32>
    // expected-error @+1 {{result must be 'tensor<8xbf16>', got 'tensor<8xf32>'}}
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// adamw: momentum and variance exist.
train.program @adamw_variance sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.state @"w#momentum" momentum of @w : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
  train.update {
    %g = train.read @w : tensor<8xf32>
    // expected-error @+1 {{names no state: @"w#variance"}}
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// adamw: the gradient is the part that the states are: 8 over two ranks is 4.
train.program @adamw_part sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.state @"w#momentum" momentum of @w : tensor<4xf32>
  train.state @"w#variance" variance of @w : tensor<4xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
  train.update {
    %g = train.read @w : tensor<8xf32>
    // expected-error @+1 {{gradient is 'tensor<8xf32>', but state @"w#momentum" is 'tensor<4xf32>'}}
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}

// -----

// adamw: a bf16 parameter has main weights.
train.program @adamw_main sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xbf16>
  train.state @"w#momentum" momentum of @w : tensor<8xf32>
  train.state @"w#variance" variance of @w : tensor<8xf32>
  train.state @scalars scalars : tensor<8xf64>
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
  train.update {
    %g = train.read @"w#momentum" : tensor<8xf32>
    // expected-error @+1 {{names no state: @"w#main_weight"}}
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8xf32>) -> tensor<8xbf16>
  }
}
