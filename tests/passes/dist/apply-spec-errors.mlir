// RUN: reckon-opt -split-input-file -verify-diagnostics \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-apply-spec))" %s

// No configuration.
// expected-error @+1 {{needs config.mesh to be sharded}}
train.program @no_config sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// No mesh in it.
// expected-error @+1 {{needs config.mesh to be sharded}}
train.program @no_mesh sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {seed = 7 : i64}} {
  train.microbatch { }
}

// -----

// ZeRO-2 and ZeRO-3 do not exist yet.
// expected-error @+1 {{supports ZeRO stages 0 and 1, got 2}}
train.program @zero sequence(8) micro_batch(1) micro_batches(1)
    global_batch(2) attributes {config = {mesh = {dp = 2 : i64},
        zero_stage = 2 : i64}} {
  train.microbatch { }
}

// -----

// A state that follows its parameter has the dimension that is split.
train.program @rank sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {mesh = {tp = 2 : i64}}} {
  train.state @w parameter {tensor_parallel_dim = 1 : i64} : tensor<8x4xf32>
  // expected-error @+1 {{has no dimension 1 to split}}
  train.state @"w#gradient" gradient of @w : tensor<32xf32>
  train.microbatch { }
}

// -----

// An axis has ranks.
// expected-error @+1 {{axis "tp" must have at least 1 rank, got 0}}
train.program @no_ranks sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {mesh = {tp = 0 : i64}}} {
  train.microbatch { }
}
