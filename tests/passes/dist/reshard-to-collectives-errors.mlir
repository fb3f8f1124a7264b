// Transitions that no single collective makes: the message names both ends.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-reshard-to-collectives))" \
// RUN:   -verify-diagnostics %s

// No mesh.
// expected-error @+1 {{has no dist.mesh; run dist-apply-spec first}}
train.program @no_mesh sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    %0 = dist.reshard %x from <[["tp"], []]> to <[[], []]>
        : tensor<8x8xf32> -> tensor<16x8xf32>
  }
}

// -----

// One dimension from one axis to another.
train.program @other_axis sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    // expected-error @+1 {{no single collective takes [{tp}, {}] to [{dp}, {}]}}
    %0 = dist.reshard %x from <[["tp"], []]> to <[["dp"], []]>
        : tensor<8x8xf32> -> tensor<8x8xf32>
  }
}

// -----

// The outer axis cannot be gathered from under the inner one: blocks would
// interleave.
train.program @outer sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    // expected-error @+1 {{no single collective takes [{dp, tp}, {}] to [{tp}, {}]}}
    %0 = dist.reshard %x from <[["dp", "tp"], []]> to <[["tp"], []]>
        : tensor<8x8xf32> -> tensor<16x8xf32>
  }
}

// -----

// Another axis on another dimension.
train.program @move_and_change sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    // expected-error @+1 {{no single collective takes [{tp}, {}] to [{}, {dp}]}}
    %0 = dist.reshard %x from <[["tp"], []]> to <[[], ["dp"]]>
        : tensor<8x8xf32> -> tensor<16x4xf32>
  }
}

// -----

// Nothing makes a whole value partial.
train.program @unreduce sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    // expected-error @+1 {{no single collective takes [{}, {}] to [{}, {}] unreduced {tp}}}
    %0 = dist.reshard %x from <[[], []]> to <[[], []], unreduced = ["tp"]>
        : tensor<8x8xf32> -> tensor<8x8xf32>
  }
}

// -----

// Reduce and gather at once.
train.program @reduce_and_gather sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    // expected-error @+1 {{no single collective takes [{dp}, {}] unreduced {tp} to [{}, {}]}}
    %0 = dist.reshard %x from <[["dp"], []], unreduced = ["tp"]> to <[[], []]>
        : tensor<8x8xf32> -> tensor<16x8xf32>
  }
}

// -----

// From flat parts to rows: they are other values.
train.program @flat_to_rows sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<32xf32>
    // expected-error @+1 {{no single collective takes [{}, {}] flat {dp} to [{tp}, {}]}}
    %0 = dist.reshard %x from <[[], []], flat = ["dp"]> to <[["tp"], []]>
        : tensor<32xf32> -> tensor<4x8xf32>
  }
}

// -----

// Cut into flat parts and gathered at once.
train.program @gather_to_flat sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    // expected-error @+1 {{no single collective takes [{tp}, {}] to [{}, {}] flat {dp}}}
    %0 = dist.reshard %x from <[["tp"], []]> to <[[], []], flat = ["dp"]>
        : tensor<8x8xf32> -> tensor<64xf32>
  }
}
