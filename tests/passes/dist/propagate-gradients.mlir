// Shardings of gradients and of the update. The mesh has 2 ranks of tp and 2
// of dp.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-propagate))" \
// RUN:   %s | FileCheck %s

// A weight gradient sums over tokens, which dp splits: it is partial over dp,
// like its state. Rows of an embedding's gradient come from no operand: they
// are split like the state that they are accumulated into.
// CHECK-LABEL: train.program @accumulate
train.program @accumulate sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.state @w parameter {dist.sharding = #dist.sharding<[["tp"], []]>}
      : tensor<6x4xf32>
  train.state @e parameter {dist.sharding = #dist.sharding<[["tp"], []]>}
      : tensor<16x4xf32>
  train.state @"w#gradient" gradient of @w {dist.sharding =
      #dist.sharding<[["tp"], []], unreduced = ["dp"]>} : tensor<6x4xf32>
  train.state @"e#gradient" gradient of @e {dist.sharding =
      #dist.sharding<[["tp"], []], unreduced = ["dp"]>} : tensor<16x4xf32>
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    %dy = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], ["tp"]]>]}
        : () -> tensor<8x6xf32>
    %x = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], []]>]}
        : () -> tensor<8x4xf32>
    // CHECK-NOT:  dist.reshard
    // CHECK:      train.linear_grad_weight
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"tp"], []], unreduced = ["dp"]>
    %dw = train.linear_grad_weight %dy, %x
        : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    train.accumulate @"w#gradient", %dw : tensor<6x4xf32>
    // CHECK:      train.embedding_grad
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"tp"], []], unreduced = ["dp"]>
    %de = train.embedding_grad %x, %tokens
        : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<16x4xf32>
    train.accumulate @"e#gradient", %de : tensor<16x4xf32>
    // CHECK:      }
  }
}

// -----

// ZeRO-1: the update reads a gradient once, reduced over dp and cut to the
// flat part of the optimizer's states; norm and optimizer share it. The new
// values are gathered where they are written. Both happen because of dp, also
// when the state itself is split because of tp.
// CHECK-LABEL: train.program @zero
train.program @zero sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
      {origins = {dp = "a.yaml:2:2", tp = "a.yaml:1:1"}}
  train.state @w parameter {dist.sharding =
      #dist.sharding<[["tp"], []], origin = "a.yaml:1:1">} : tensor<6x4xf32>
  train.state @"w#gradient" gradient of @w {dist.sharding =
      #dist.sharding<[["tp"], []], unreduced = ["dp"], origin = "a.yaml:1:1">}
      : tensor<6x4xf32>
  train.state @"w#momentum" momentum of @w {dist.sharding =
      #dist.sharding<[["tp"], []], flat = ["dp"], origin = "a.yaml:1:1">}
      : tensor<6x4xf32>
  train.state @"w#variance" variance of @w {dist.sharding =
      #dist.sharding<[["tp"], []], flat = ["dp"], origin = "a.yaml:1:1">}
      : tensor<6x4xf32>
  train.state @scalars scalars {dist.sharding = #dist.sharding<[[]]>}
      : tensor<8xf64>
  train.state @metrics metrics {dist.sharding = #dist.sharding<[[]]>}
      : tensor<4xf64>
  train.microbatch { }
  // CHECK:      train.update {
  train.update {
    // CHECK-NEXT: %[[G:.*]] = train.read @"w#gradient"
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"tp"], []], unreduced = ["dp"],
    // CHECK-NEXT: %[[F:.*]] = dist.reshard %[[G]]
    // CHECK-SAME:   from <{{\[\[}}"tp"], []], unreduced = ["dp"],
    // CHECK-SAME:   to <{{\[\[}}"tp"], []], flat = ["dp"],
    // CHECK-SAME:   origin = "a.yaml:2:2">
    // CHECK-NEXT: train.sum_squares @metrics, %[[F]]
    // The norm and the loss are sums over all ranks, tp included.
    // CHECK-NEXT: %[[M:.*]] = train.read @metrics
    // CHECK-SAME:   #dist.sharding<{{\[\[}}]], unreduced = ["tp", "dp"]>
    // CHECK-NEXT: %[[A:.*]] = dist.reshard %[[M]]
    // CHECK-SAME:   to <{{\[\[}}]]
    // CHECK-NEXT: train.write @metrics, %[[A]]
    // CHECK-NEXT: train.clip_factor
    // CHECK-NEXT: %[[P:.*]] = train.adamw @w, %[[F]]
    // CHECK-SAME:   flat = ["dp"]
    // CHECK-NEXT: %[[W:.*]] = dist.reshard %[[P]]
    // CHECK-SAME:   flat = ["dp"]
    // CHECK-SAME:   to <{{\[\[}}"tp"], []], origin = "a.yaml:2:2">
    // CHECK-NEXT: train.write @w, %[[W]]
    %g = train.read @"w#gradient" : tensor<6x4xf32>
    train.sum_squares @metrics, %g : tensor<6x4xf32>
    train.clip_factor @metrics {clip = 1.0 : f64}
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<6x4xf32>) -> tensor<6x4xf32>
    train.write @w, %p : tensor<6x4xf32>
  }
}

// -----

// Without ZeRO the reduced gradient is whole, and so is the new value: nothing
// is gathered.
// CHECK-LABEL: train.program @replicated
train.program @replicated sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["dp"] sizes [2]
  train.state @w parameter {dist.sharding = #dist.sharding<[[], []]>}
      : tensor<6x4xf32>
  train.state @"w#gradient" gradient of @w {dist.sharding =
      #dist.sharding<[[], []], unreduced = ["dp"]>} : tensor<6x4xf32>
  train.state @"w#momentum" momentum of @w {dist.sharding =
      #dist.sharding<[[], []]>} : tensor<6x4xf32>
  train.state @"w#variance" variance of @w {dist.sharding =
      #dist.sharding<[[], []]>} : tensor<6x4xf32>
  train.state @scalars scalars {dist.sharding = #dist.sharding<[[]]>}
      : tensor<8xf64>
  train.state @metrics metrics {dist.sharding = #dist.sharding<[[]]>}
      : tensor<4xf64>
  train.microbatch { }
  train.update {
    // CHECK:      dist.reshard
    // CHECK-SAME:   from <{{\[\[}}], []], unreduced = ["dp"]>
    // CHECK-SAME:   to <{{\[\[}}], []]>
    // CHECK:      %[[P:.*]] = train.adamw
    // CHECK-NEXT: train.write @w, %[[P]]
    %g = train.read @"w#gradient" : tensor<6x4xf32>
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<6x4xf32>) -> tensor<6x4xf32>
    train.write @w, %p : tensor<6x4xf32>
  }
}
