// Local shapes and what operations and states remember of the global ones. The
// mesh has 2 ranks of tp, 4 of dp and 2 of pp.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-partition))" \
// RUN:   %s | FileCheck %s

// CHECK-LABEL: train.program @states
train.program @states sequence(8) micro_batch(1) micro_batches(1)
    global_batch(4) {
  dist.mesh @world axes ["tp", "dp", "pp"] sizes [2, 4, 2]
  // Columns over tp: 6 / 2 = 3. Equal on all ranks of dp; pp is no replica:
  // every stage has other states.
  // CHECK:      train.state @w parameter {box_axes = {{\[\[}}], ["tp"]],
  // CHECK-SAME:   global_shape = array<i64: 4, 6>, replica_axes = ["dp"]}
  // CHECK-SAME:   : tensor<4x3xf32>
  train.state @w parameter {dist.sharding = #dist.sharding<[[], ["tp"]]>}
      : tensor<4x6xf32>
  // Partial over dp is no replica either: the values differ.
  // CHECK-NEXT: train.state @"w#gradient" gradient of @w
  // CHECK-SAME:   replica_axes = []} : tensor<4x3xf32>
  train.state @"w#gradient" gradient of @w {dist.sharding =
      #dist.sharding<[[], ["tp"]], unreduced = ["dp"]>} : tensor<4x6xf32>
  // Columns over tp, the rest flat over dp: 4 * 3 / 4 = 3.
  // CHECK-NEXT: train.state @"w#momentum" momentum of @w
  // CHECK-SAME:   {box_axes = {{\[\[}}], ["tp"]], flat_axes = ["dp"],
  // CHECK-SAME:   global_shape = array<i64: 4, 6>, replica_axes = []}
  // CHECK-SAME:   : tensor<3xf32>
  train.state @"w#momentum" momentum of @w {dist.sharding =
      #dist.sharding<[[], ["tp"]], flat = ["dp"]>} : tensor<4x6xf32>
  // 5 values over 4 ranks of dp are 2 each, the last rank's padded.
  // CHECK-NEXT: train.state @norm parameter {box_axes = {{\[\[}}]],
  // CHECK-SAME:   global_shape = array<i64: 5>, replica_axes = ["tp", "dp"]}
  // CHECK-SAME:   : tensor<5xf32>
  // CHECK-NEXT: train.state @"norm#momentum"
  // CHECK-SAME:   flat_axes = ["dp"], global_shape = array<i64: 5>,
  // CHECK-SAME:   replica_axes = ["tp"]} : tensor<2xf32>
  train.state @norm parameter {dist.sharding = #dist.sharding<[[]]>}
      : tensor<5xf32>
  train.state @"norm#momentum" momentum of @norm {dist.sharding =
      #dist.sharding<[[]], flat = ["dp"]>} : tensor<5xf32>
  train.microbatch { }
}

// -----

// Operands, results and block arguments get local types: 8 tokens over 4 ranks
// of dp are 2, 16 rows of the vocabulary over 2 of tp are 8. What works on a
// split vocabulary knows its axes; the loss counts on one of the ranks of tp.
// CHECK-LABEL: train.program @vocabulary
train.program @vocabulary sequence(8) micro_batch(1) micro_batches(1)
    global_batch(4) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 4]
  train.state @e parameter {dist.sharding = #dist.sharding<[["tp"], []]>}
      : tensor<16x4xf32>
  train.state @"e#gradient" gradient of @e {dist.sharding =
      #dist.sharding<[["tp"], []], unreduced = ["dp"]>} : tensor<16x4xf32>
  train.state @metrics metrics {dist.sharding = #dist.sharding<[[]]>}
      : tensor<4xf64>
  train.microbatch {
    // CHECK:      %tokens = train.input tokens : tensor<2xi32>
    %tokens = train.input tokens {dist.sharding = [#dist.sharding<[["dp"]]>]}
        : tensor<8xi32>
    // CHECK-NEXT: train.layer "embedding"(%tokens) {
    // CHECK-NEXT: ^bb0(%{{.*}}: tensor<2xi32>):
    %y = train.layer "embedding" (%tokens)
        attributes {dist.sharding = [#dist.sharding<[["dp"], []]>]} {
    ^bb0(%t: tensor<8xi32>):
      // CHECK-NEXT: train.read @e : tensor<8x4xf32>
      %w = train.read @e {dist.sharding = [#dist.sharding<[["tp"], []]>]}
          : tensor<16x4xf32>
      // CHECK-NEXT: train.embedding %{{.*}}, %{{.*}} {vocab_axes = ["tp"]}
      // CHECK-SAME:   : (tensor<2xi32>, tensor<8x4xf32>) -> tensor<2x4xf32>
      %x = train.embedding %t, %w {dist.sharding =
          [#dist.sharding<[["dp"], []], unreduced = ["tp"]>]}
          : (tensor<8xi32>, tensor<16x4xf32>) -> tensor<8x4xf32>
      // CHECK-NEXT: dist.reshard
      // CHECK-SAME:   : tensor<2x4xf32> -> tensor<2x4xf32>
      %r = dist.reshard %x from <[["dp"], []], unreduced = ["tp"]>
          to <[["dp"], []]> {dist.sharding = [#dist.sharding<[["dp"], []]>]}
          : tensor<8x4xf32> -> tensor<8x4xf32>
      // CHECK-NEXT: train.embedding_grad %{{.*}}, %{{.*}} {vocab_axes = ["tp"]}
      // CHECK-SAME:   : (tensor<2x4xf32>, tensor<2xi32>) -> tensor<8x4xf32>
      %d = train.embedding_grad %r, %t {dist.sharding =
          [#dist.sharding<[["tp"], []], unreduced = ["dp"]>]}
          : (tensor<8x4xf32>, tensor<8xi32>) -> tensor<16x4xf32>
      // CHECK-NEXT: train.accumulate @"e#gradient", %{{.*}} : tensor<8x4xf32>
      train.accumulate @"e#gradient", %d : tensor<16x4xf32>
      train.yield %r : tensor<8x4xf32>
    } : (tensor<8xi32>) -> tensor<8x4xf32>
    // CHECK:      } : (tensor<2xi32>) -> tensor<2x4xf32>
    // CHECK-NEXT: %[[L:.*]]:3 = "test.value"()
    // CHECK-SAME:   -> (tensor<2x8xf32>, tensor<2x2xf32>, tensor<2xf32>)
    %l, %s, %m = "test.value"() {dist.sharding = [
        #dist.sharding<[["dp"], ["tp"]]>, #dist.sharding<[[], ["dp"]]>,
        #dist.sharding<[["dp"]]>]}
        : () -> (tensor<8x16xf32>, tensor<2x8xf32>, tensor<8xf32>)
    // CHECK-NEXT: train.cross_entropy_max %[[L]]#0 {vocab_axes = ["tp"]}
    %max = train.cross_entropy_max %l {dist.sharding =
        [#dist.sharding<[["dp"]], unreduced = ["tp"], reduction = "max">]}
        : (tensor<8x16xf32>) -> tensor<8xf32>
    // CHECK-NEXT: train.cross_entropy_sum {{.*}} {vocab_axes = ["tp"]}
    %sum = train.cross_entropy_sum %l, %tokens, %m {dist.sharding =
        [#dist.sharding<[[], ["dp"]], unreduced = ["tp"]>]}
        : (tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xf32>
    // CHECK-NEXT: train.cross_entropy_loss @metrics
    // CHECK-SAME:   {replica_axes = ["tp"], scale = 1.250000e-01 : f64,
    // CHECK-SAME:   vocab_axes = ["tp"]}
    %lse = train.cross_entropy_loss @metrics, %l, %tokens, %s, %m
        {scale = 0.125 : f64, dist.sharding = [#dist.sharding<[["dp"]]>]}
        : (tensor<8x16xf32>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xf32>)
        -> tensor<8xf32>
    // CHECK-NEXT: train.cross_entropy_grad
    // CHECK-SAME:   {scale = 1.250000e-01 : f64, vocab_axes = ["tp"]}
    %dl = train.cross_entropy_grad %l, %tokens, %lse
        {scale = 0.125 : f64,
         dist.sharding = [#dist.sharding<[["dp"], ["tp"]]>]}
        : (tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8x16xf32>
  }
  // Equal gradients on several ranks count once: a norm's on tp (dp is
  // reduced and split), a split weight's nowhere.
  train.update {
    %a, %b, %c = "test.value"() {dist.sharding = [
        #dist.sharding<[[]], flat = ["dp"]>,
        #dist.sharding<[["tp"]], flat = ["dp"]>, #dist.sharding<[["tp"]]>]}
        : () -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    // CHECK:      train.sum_squares @metrics
    // CHECK-SAME:   {replica_axes = {{\[\[}}"tp"], [], ["dp"]]}
    // CHECK-SAME:   : tensor<2xf32>, tensor<1xf32>, tensor<4xf32>
    train.sum_squares @metrics, %a, %b, %c
        : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  // CHECK-NOT: dist.sharding{{ *=}}
}
