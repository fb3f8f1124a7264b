// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-propagate))" \
// RUN:   -verify-diagnostics %s

// No mesh.
// expected-error @+1 {{has no dist.mesh; run dist-apply-spec first}}
train.program @no_mesh sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// A gradient that is partial over dp cannot go into a state that is not: the
// sum over the ranks would be missing.
train.program @accumulate sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.state @w parameter {dist.sharding = #dist.sharding<[["tp"], []]>}
      : tensor<6x4xf32>
  train.state @"w#gradient" gradient of @w {dist.sharding =
      #dist.sharding<[["tp"], []]>} : tensor<6x4xf32>
  train.microbatch {
    %dy = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], ["tp"]]>]}
        : () -> tensor<8x6xf32>
    %x = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], []]>]}
        : () -> tensor<8x4xf32>
    %dw = train.linear_grad_weight %dy, %x
        : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    // expected-error @+1 {{gradient is sharded [{tp}, {}] unreduced {dp}, but state @w#gradient is sharded [{tp}, {}]}}
    train.accumulate @"w#gradient", %dw : tensor<6x4xf32>
  }
}
