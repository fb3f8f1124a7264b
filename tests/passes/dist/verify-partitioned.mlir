// What verify-partitioned refuses, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(verify-partitioned))" \
// RUN:   -verify-diagnostics %s

// All is well. 8 rows over 2 ranks of tp are 4; 4 * 5 values over 4 ranks of
// dp, flat, are 5.
train.program @good sequence(8) micro_batch(1) micro_batches(1)
    global_batch(4) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 4]
  train.state @w parameter
      {global_shape = array<i64: 8, 5>, box_axes = [["tp"], []]}
      : tensor<4x5xf32>
  train.state @"w#momentum" momentum of @w {global_shape = array<i64: 8, 5>,
      box_axes = [["tp"], []], flat_axes = ["dp"]} : tensor<5xf32>
  train.microbatch {
    %x = "test.value"() : () -> tensor<4x5xf32>
    %r = dist.all_reduce %x axes ["tp", "dp"] group_size 8 reduction "sum"
        : (tensor<4x5xf32>) -> tensor<4x5xf32>
  }
}

// -----

// No mesh.
// expected-error @+1 {{has no dist.mesh}}
train.program @no_mesh sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// A state that dist-partition has not seen.
train.program @unpartitioned sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  // expected-error @+1 {{has no global shape; it was not partitioned}}
  train.state @w parameter : tensor<8x4xf32>
  train.microbatch { }
}

// -----

// A global size that its axes do not divide.
train.program @indivisible sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [4]
  // expected-error @+1 {{global size 6 is not a multiple of 4}}
  train.state @w parameter {global_shape = array<i64: 6>, box_axes = [["tp"]]}
      : tensor<1xf32>
  train.microbatch { }
}

// -----

// A local size that is not the rank's part: 8 over 2 ranks are 4.
train.program @local_size sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  // expected-error @+1 {{local type 'tensor<8xf32>' times its ranks is not the global shape}}
  train.state @w parameter {global_shape = array<i64: 8>, box_axes = [["tp"]]}
      : tensor<8xf32>
  train.microbatch { }
}

// -----

// A flat part without its padding: 7 over 2 ranks are 4 each.
train.program @flat_size sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["dp"] sizes [2]
  // expected-error @+1 {{local type 'tensor<3xf32>' times its ranks is not the global shape}}
  train.state @w buffer {global_shape = array<i64: 7>, box_axes = [[]],
      flat_axes = ["dp"]} : tensor<3xf32>
  train.microbatch { }
}

// -----

// A reshard that was not lowered.
train.program @reshard sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8xf32>
    // expected-error @+1 {{still speaks of shardings after partitioning}}
    %r = dist.reshard %x from <[["tp"]]> to <[[]]>
        : tensor<8xf32> -> tensor<16xf32>
  }
}

// -----

// A sharding that was left behind.
train.program @attribute sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  train.microbatch {
    // expected-error @+1 {{still speaks of shardings after partitioning}}
    %x = "test.value"() {dist.sharding = [#dist.sharding<[[]]>]}
        : () -> tensor<8xf32>
  }
}

// -----

// A group of another size than the mesh says: 2 * 2 are 4.
train.program @group sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8xf32>
    // expected-error @+1 {{group_size is 2, but ["tp", "dp"] has 4 ranks}}
    %r = dist.all_reduce %x axes ["tp", "dp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}
