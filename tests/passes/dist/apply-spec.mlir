// The mesh and the shardings of states that dist-apply-spec derives from the
// configuration.
// RUN: reckon-opt -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-apply-spec))" \
// RUN:   %s | FileCheck %s

// Two ranks of tp and four of dp, with ZeRO-1.
// CHECK-LABEL: train.program @zero
train.program @zero sequence(8) micro_batch(1) micro_batches(1) global_batch(4)
    attributes {config = {mesh = {tp = 2 : i64, cp = 1 : i64, ep = 1 : i64,
        dp = 4 : i64, pp = 1 : i64}, zero_stage = 1 : i64,
        origins = {tensor_parallel = "a.yaml:1:1", data_parallel = "a.yaml:2:2",
        zero_stage = "a.yaml:3:3"}}} {
  // All five axes, tp fastest; origins of those that a key has set.
  // CHECK:      dist.mesh @world axes ["tp", "cp", "ep", "dp", "pp"]
  // CHECK-SAME:   sizes [2, 1, 1, 4, 1]
  // CHECK-SAME:   {origins = {dp = "a.yaml:2:2", tp = "a.yaml:1:1"}}

  // The parameter's dimension goes to tp, and to its gradient and optimizer
  // states likewise; the gradient is also partial over dp, the optimizer's
  // states are also flat over dp.
  // CHECK:      train.state @w parameter {dist.sharding =
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], ["tp"]], origin = "a.yaml:1:1">,
  train.state @w parameter {tensor_parallel_dim = 1 : i64} : tensor<8x4xbf16>
  // A norm's weight is whole on every rank.
  // CHECK-NEXT: train.state @norm parameter
  // CHECK-SAME:   {dist.sharding = #dist.sharding<{{\[\[}}]]>}
  train.state @norm parameter : tensor<4xbf16>
  // CHECK-NEXT: train.state @"w#gradient" gradient of @w
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], ["tp"]], unreduced = ["dp"],
  // CHECK-SAME:   origin = "a.yaml:1:1">
  train.state @"w#gradient" gradient of @w : tensor<8x4xf32>
  // CHECK-NEXT: train.state @"norm#gradient" gradient of @norm
  // CHECK-SAME:   #dist.sharding<{{\[\[}}]], unreduced = ["dp"]>
  train.state @"norm#gradient" gradient of @norm : tensor<4xf32>
  // CHECK-NEXT: train.state @"w#main_weight"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], ["tp"]], flat = ["dp"],
  train.state @"w#main_weight" main_weight of @w : tensor<8x4xf32>
  // CHECK-NEXT: train.state @"w#momentum"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], ["tp"]], flat = ["dp"],
  train.state @"w#momentum" momentum of @w : tensor<8x4xf32>
  // CHECK-NEXT: train.state @"w#variance"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], ["tp"]], flat = ["dp"],
  train.state @"w#variance" variance of @w : tensor<8x4xf32>
  // CHECK-NEXT: train.state @table buffer
  // CHECK-SAME:   {dist.sharding = #dist.sharding<{{\[\[}}], []]>}
  train.state @table buffer : tensor<8x4xf32>
  // CHECK-NEXT: train.state @metrics metrics
  // CHECK-SAME:   {dist.sharding = #dist.sharding<{{\[\[}}]]>}
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch { }
}

// -----

// ZeRO 0: optimizer states like the parameter. tp of one rank splits nothing.
// CHECK-LABEL: train.program @replicated
train.program @replicated sequence(8) micro_batch(1) micro_batches(1)
    global_batch(4) attributes {config = {mesh = {dp = 4 : i64},
        zero_stage = 0 : i64}} {
  // CHECK:      sizes [1, 1, 1, 4, 1]
  // CHECK:      train.state @w parameter
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], []]>
  train.state @w parameter {tensor_parallel_dim = 1 : i64} : tensor<8x4xf32>
  // CHECK:      train.state @"w#gradient"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], []], unreduced = ["dp"]>
  train.state @"w#gradient" gradient of @w : tensor<8x4xf32>
  // CHECK:      train.state @"w#momentum"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}], []]>
  train.state @"w#momentum" momentum of @w : tensor<8x4xf32>
  train.microbatch { }
}

// -----

// ZeRO-1 over one rank of dp: nothing to reduce, nothing to split.
// CHECK-LABEL: train.program @one_replica
train.program @one_replica sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {mesh = {tp = 2 : i64},
        zero_stage = 1 : i64}} {
  train.state @w parameter {tensor_parallel_dim = 0 : i64} : tensor<8x4xf32>
  // CHECK:      train.state @"w#gradient"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}"tp"], []]>
  train.state @"w#gradient" gradient of @w : tensor<8x4xf32>
  // CHECK:      train.state @"w#momentum"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}"tp"], []]>
  train.state @"w#momentum" momentum of @w : tensor<8x4xf32>
  train.microbatch { }
}

// -----

// Sequence parallelism: the gradient of a weight that tp does not split is
// partial over tp too; that of a split weight is not.
// CHECK-LABEL: train.program @sequence
train.program @sequence sequence(8) micro_batch(1) micro_batches(1)
    global_batch(2) attributes {config = {mesh = {tp = 2 : i64, dp = 2 : i64},
        zero_stage = 0 : i64, sequence_parallel = true}} {
  train.state @w parameter {tensor_parallel_dim = 0 : i64} : tensor<8x4xf32>
  train.state @norm parameter : tensor<4xf32>
  // CHECK:      train.state @"w#gradient"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}"tp"], []], unreduced = ["dp"]>
  train.state @"w#gradient" gradient of @w : tensor<8x4xf32>
  // CHECK:      train.state @"norm#gradient"
  // CHECK-SAME:   #dist.sharding<{{\[\[}}]], unreduced = ["dp", "tp"]>
  train.state @"norm#gradient" gradient of @norm : tensor<4xf32>
  train.microbatch { }
}
