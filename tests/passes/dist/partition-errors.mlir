// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-partition))" \
// RUN:   -verify-diagnostics %s

// No mesh.
// expected-error @+1 {{has no dist.mesh; run dist-apply-spec first}}
train.program @no_mesh sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { }
}

// -----

// A state that its ranks do not divide is refused, not cut short, and the
// message leads to the YAML.
train.program @state sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp"] sizes [4] {origins = {tp = "a.yaml:1:1"}}
  // expected-error @+1 {{dimension 1 of 'tensor<4x6xf32>' has 6 elements, which 4 ranks of {tp} do not divide; choose another degree at a.yaml:1:1}}
  train.state @w parameter {dist.sharding = #dist.sharding<[[], ["tp"]]>}
      : tensor<4x6xf32>
  train.microbatch { }
}

// -----

// So is a value.
train.program @value sequence(7) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["dp"] sizes [2]
  train.microbatch {
    // expected-error @+1 {{dimension 0 of 'tensor<7xi32>' has 7 elements, which 2 ranks of {dp} do not divide; choose another degree}}
    %t = train.input tokens {dist.sharding = [#dist.sharding<[["dp"]]>]}
        : tensor<7xi32>
  }
}
