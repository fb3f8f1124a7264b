// Rules of train.state and of the operations that name one, one rule per
// chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// A state has a static shape.
// expected-error @+1 {{must have a static tensor type, got 'tensor<?xf32>'}}
train.state @w parameter : tensor<?xf32>

// -----

// A state is a tensor.
// expected-error @+1 {{must have a static tensor type, got 'f32'}}
train.state @w parameter : f32

// -----

// A gradient belongs to a parameter.
// expected-error @+1 {{must name its parameter with `of`}}
train.state @"w#gradient" gradient : tensor<8xf32>

// -----

// A buffer belongs to none.
// expected-error @+1 {{must not name a parameter}}
train.state @table buffer of @w : tensor<8xf32>

// -----

// The name says whose state it is.
// expected-error @+1 {{must be called w#momentum}}
train.state @m momentum of @w : tensor<8xf32>

// -----

// Weight decay is for parameters.
// expected-error @+1 {{only parameters decay}}
train.state @"w#variance" variance of @w decay : tensor<8xf32>

// -----

// Metrics have their four places.
// expected-error @+1 {{of role metrics must be 'tensor<4xf64>', got 'tensor<4xf32>'}}
train.state @metrics metrics : tensor<4xf32>

// -----

// Scalars have their eight places.
// expected-error @+1 {{of role scalars must be 'tensor<8xf64>', got 'tensor<4xf64>'}}
train.state @scalars scalars : tensor<4xf64>

// -----

// The dimension to split exists.
// expected-error @+1 {{tensor_parallel_dim 2 is outside 'tensor<8x4xf32>'}}
train.state @w parameter {tensor_parallel_dim = 2 : i64} : tensor<8x4xf32>

// -----

// A negative dimension does not count from the end.
// expected-error @+1 {{tensor_parallel_dim -1 is outside 'tensor<8x4xf32>'}}
train.state @w parameter {tensor_parallel_dim = -1 : i64} : tensor<8x4xf32>

// -----

// A partitioned state knows its global shape and what splits it.
// expected-error @+1 {{needs global_shape and box_axes together}}
train.state @w parameter {global_shape = array<i64: 8, 4>} : tensor<8x4xf32>

// -----

// Every dimension has a list of axes.
// expected-error @+1 {{box_axes must be a list of axis names for each of the 2 dimensions, got}}
train.state @w parameter
    {global_shape = array<i64: 8, 4>, box_axes = [[]]} : tensor<8x4xf32>

// -----

// Axes are names.
// expected-error @+1 {{box_axes must be a list of axis names for each of the 1 dimensions, got}}
train.state @w parameter
    {global_shape = array<i64: 8>, box_axes = [[1]]} : tensor<8xf32>

// -----

// First values are of a known kind.
// expected-error @+1 {{init needs a kind: zeros, ones, normal or rope}}
train.state @w parameter {init = {kind = "uniform"}} : tensor<8xf32>

// -----

// A normal distribution has a deviation.
// expected-error @+1 {{init normal needs the number stddev}}
train.state @w parameter {init = {kind = "normal"}} : tensor<8xf32>

// -----

// A rotation table has five numbers.
// expected-error @+1 {{init rope needs 5 numbers}}
train.state @rope.table buffer
    {init = {kind = "rope", rope = array<f64: 1.0e4>}} : tensor<64x16xf32>

// -----

// The owner of a state exists.
train.program @owner sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{names no state: @w}}
  train.state @"w#gradient" gradient of @w : tensor<8xf32>
  train.microbatch { }
}

// -----

// The owner of a state is a parameter.
train.program @owner_role sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @table buffer : tensor<8xf32>
  // expected-error @+1 {{must name a state of role parameter, but @table has role buffer}}
  train.state @"table#gradient" gradient of @table : tensor<8xf32>
  train.microbatch { }
}

// -----

// read: the state exists.
train.program @read_missing sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
  train.update {
    // expected-error @+1 {{names no state: @w}}
    %w = train.read @w : tensor<8xf32>
  }
}

// -----

// read: the value has the state's type.
train.program @read_type sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.microbatch { }
  train.update {
    // expected-error @+1 {{has 'tensor<4xf32>', but state @w is 'tensor<8xf32>'}}
    %w = train.read @w : tensor<4xf32>
  }
}

// -----

// write: the state exists.
train.program @write_missing sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
  train.update {
    %x = "test.value"() : () -> tensor<8xf32>
    // expected-error @+1 {{names no state: @w}}
    train.write @w, %x : tensor<8xf32>
  }
}

// -----

// write: the value has the state's type.
train.program @write_type sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @w parameter : tensor<8xf32>
  train.microbatch { }
  train.update {
    %x = "test.value"() : () -> tensor<8xbf16>
    // expected-error @+1 {{has 'tensor<8xbf16>', but state @w is 'tensor<8xf32>'}}
    train.write @w, %x : tensor<8xbf16>
  }
}

// -----

// fill_zero: the state exists.
train.program @fill_missing sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
  train.update {
    // expected-error @+1 {{names no state: @metrics}}
    train.fill_zero @metrics
  }
}
