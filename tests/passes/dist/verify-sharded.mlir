// What verify-sharded refuses, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(verify-sharded))" \
// RUN:   -verify-diagnostics %s

// All is well: a partial result is reduced before a norm reads it.
train.program @good sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  train.state @w parameter {dist.sharding = #dist.sharding<[["tp"]]>}
      : tensor<4xf32>
  train.microbatch {
    %p, %w = "test.value"() {dist.sharding =
        [#dist.sharding<[[], []], unreduced = ["tp"]>, #dist.sharding<[[]]>]}
        : () -> (tensor<8x4xf32>, tensor<4xf32>)
    %s = train.add %p, %p {dist.sharding =
        [#dist.sharding<[[], []], unreduced = ["tp"]>]}
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %r = dist.reshard %s from <[[], []], unreduced = ["tp"]> to <[[], []]>
        {dist.sharding = [#dist.sharding<[[], []]>]}
        : tensor<8x4xf32> -> tensor<8x4xf32>
    %n = train.rms_norm %r, %w
        {eps = 1.0 : f64, dist.sharding = [#dist.sharding<[[], []]>]}
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
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

// A state that its axes do not divide; the message names the key to change.
train.program @state sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [4] {origins = {tp = "a.yaml:1:1"}}
  // expected-error @+1 {{dimension 0 of 'tensor<6x4xf32>' has 6 elements, which 4 ranks of {tp} do not divide; choose another degree at a.yaml:1:1}}
  train.state @w parameter {dist.sharding = #dist.sharding<[["tp"], []]>}
      : tensor<6x4xf32>
  train.microbatch { }
}

// -----

// A value that its axes do not divide: 2 ranks of tp times 2 of dp are 4.
train.program @value sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    // expected-error @+1 {{dimension 0 of 'tensor<6x4xf32>' has 6 elements, which 4 ranks of {dp, tp} do not divide; choose another degree}}
    %x = "test.value"() {dist.sharding = [#dist.sharding<[["dp", "tp"], []]>]}
        : () -> tensor<6x4xf32>
  }
}

// -----

// A value without a sharding.
train.program @unsharded sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  train.microbatch {
    // expected-error @+1 {{result 0 has no sharding}}
    %t = train.input tokens : tensor<8xi32>
  }
}

// -----

// A norm is not linear: it cannot read a partial result.
train.program @partial sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  train.microbatch {
    %p, %w = "test.value"() {dist.sharding =
        [#dist.sharding<[[], []], unreduced = ["tp"]>, #dist.sharding<[[]]>]}
        : () -> (tensor<8x4xf32>, tensor<4xf32>)
    // expected-error @+1 {{reads a partial result, sharded [{}, {}] unreduced {tp}}}
    %n = train.rms_norm %p, %w
        {eps = 1.0 : f64, dist.sharding = [#dist.sharding<[[], []]>]}
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  }
}

// -----

// Partial results do not leave a layer.
train.program @yield sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  train.microbatch {
    %t = train.input tokens {dist.sharding = [#dist.sharding<[[]]>]}
        : tensor<8xi32>
    %y = train.layer "layers.0" (%t)
        attributes {dist.sharding =
            [#dist.sharding<[[]], unreduced = ["tp"]>]} {
    ^bb0(%x: tensor<8xi32>):
      %p = "test.value"() {dist.sharding =
          [#dist.sharding<[[]], unreduced = ["tp"]>]} : () -> tensor<8xf32>
      // expected-error @+1 {{reads a partial result, sharded [{}] unreduced {tp}}}
      train.yield %p : tensor<8xf32>
    } : (tensor<8xi32>) -> tensor<8xf32>
  }
}

// -----

// There is no communication yet.
train.program @early sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [2]
  train.microbatch {
    %p = "test.value"() {dist.sharding = [#dist.sharding<[[]]>]}
        : () -> tensor<8xf32>
    // expected-error @+1 {{is communication before partitioning}}
    %r = dist.all_reduce %p axes ["tp"] group_size 2 reduction "sum"
        : (tensor<8xf32>) -> tensor<8xf32>
  }
}
