// How shardings flow from the states through the operations, and where a value
// has to move. The mesh has 2 ranks of tp and 2 of dp; x is [8 tokens, 4].
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-propagate))" \
// RUN:   %s | FileCheck %s

// A column-parallel weight (rows split), then a row-parallel one (columns
// split): the product of the two is partial over tp, and is reduced before the
// residual sum because the other summand is not partial.
// CHECK-LABEL: train.program @column_row
train.program @column_row sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
      {origins = {tp = "a.yaml:1:1"}}
  train.state @up parameter {dist.sharding =
      #dist.sharding<[["tp"], []], origin = "a.yaml:1:1">} : tensor<6x4xf32>
  train.state @down parameter {dist.sharding =
      #dist.sharding<[[], ["tp"]], origin = "a.yaml:1:1">} : tensor<4x6xf32>
  train.microbatch {
    %x = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], []]>]}
        : () -> tensor<8x4xf32>
    %u = train.read @up : tensor<6x4xf32>
    %d = train.read @down : tensor<4x6xf32>
    // CHECK:      %[[H:.*]] = train.linear
    // CHECK-SAME:   {dist.sharding = [#dist.sharding<{{\[\[}}"dp"], ["tp"]],
    // CHECK-SAME:   origin = "a.yaml:1:1">]}
    %h = train.linear %x, %u
        : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    // CHECK:      %[[Y:.*]] = train.linear %[[H]], %down
    // CHECK-SAME:   {dist.sharding = [#dist.sharding<{{\[\[}}"dp"], []],
    // CHECK-SAME:   unreduced = ["tp"], origin = "a.yaml:1:1">]}
    %y = train.linear %h, %d
        : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    // CHECK:      %[[R:.*]] = dist.reshard %[[Y]]
    // CHECK-SAME:   from <{{\[\[}}"dp"], []], unreduced = ["tp"],
    // CHECK-SAME:   origin = "a.yaml:1:1">
    // CHECK-SAME:   to <{{\[\[}}"dp"], []], origin = "a.yaml:1:1">
    // CHECK:      train.add %{{.*}}, %[[R]]
    // CHECK-SAME:   {dist.sharding = [#dist.sharding<{{\[\[}}"dp"], []]
    %z = train.add %x, %y
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  }
}

// -----

// The sum of two partial values stays partial: one reduction, when the layer
// is left, instead of two.
// CHECK-LABEL: train.program @sum_of_partial
train.program @sum_of_partial sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.state @a parameter {dist.sharding = #dist.sharding<[[], ["tp"]]>}
      : tensor<4x6xf32>
  train.microbatch {
    %g = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], ["tp"]]>]}
        : () -> tensor<8x6xf32>
    // CHECK:      train.layer "layers.0"
    // CHECK-SAME:   {dist.sharding = [#dist.sharding<{{\[\[}}"dp"], []]>]}
    // CHECK:      %[[A:.*]] = train.linear
    // CHECK-NOT:  dist.reshard
    // CHECK:      %[[S:.*]] = train.add %[[A]], %[[A]]
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"dp"], []], unreduced = ["tp"]>
    // CHECK-NEXT: %[[R:.*]] = dist.reshard %[[S]]
    // CHECK-SAME:   from <{{\[\[}}"dp"], []], unreduced = ["tp"]>
    // CHECK-SAME:   to <{{\[\[}}"dp"], []]>
    // CHECK-NEXT: train.yield %[[R]]
    %y = train.layer "layers.0" (%g) {
    ^bb0(%x: tensor<8x6xf32>):
      %w = train.read @a : tensor<4x6xf32>
      %p = train.linear %x, %w
          : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
      %s = train.add %p, %p
          : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
      train.yield %s : tensor<8x4xf32>
    } : (tensor<8x6xf32>) -> tensor<8x4xf32>
  }
}

// -----

// Two readers that are not linear: each gets its reshard here;
// dist-fuse-collectives makes one transfer of the two.
// CHECK-LABEL: train.program @two_readers
train.program @two_readers sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %p = "test.value"() {dist.sharding =
        [#dist.sharding<[["dp"], []], unreduced = ["tp"]>]}
        : () -> tensor<8x4xf32>
    %w = "test.value"() {dist.sharding = [#dist.sharding<[[]]>]}
        : () -> tensor<4xf32>
    // CHECK:      %[[P:.*]] = "test.value"
    // CHECK:      %[[A:.*]] = dist.reshard %[[P]]
    // CHECK-NEXT: train.rms_norm %[[A]]
    // CHECK-NEXT: %[[B:.*]] = dist.reshard %[[P]]
    // CHECK-NEXT: train.rms_norm %[[B]]
    %a = train.rms_norm %p, %w {eps = 1.0 : f64}
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    %b = train.rms_norm %p, %w {eps = 2.0 : f64}
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  }
}

// -----

// A conflict: gate is split over tp, up is not. The first operand that splits
// a dimension decides; the other follows.
// CHECK-LABEL: train.program @conflict
train.program @conflict sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %up = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], []]>]}
        : () -> tensor<8x4xf32>
    %gate = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], ["tp"]]>]}
        : () -> tensor<8x4xf32>
    // CHECK:      %[[R:.*]] = dist.reshard %[[UP:.*]] from <{{\[\[}}"dp"], []]>
    // CHECK-SAME:   to <{{\[\[}}"dp"], ["tp"]]>
    // CHECK-NEXT: train.swiglu %{{.*}}, %[[R]]
    // CHECK-SAME:   {dist.sharding = [#dist.sharding<{{\[\[}}"dp"], ["tp"]]>]}
    %a = train.swiglu %gate, %up
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  }
}

// -----

// A norm needs whole rows: a split of the columns is gathered in front of it.
// CHECK-LABEL: train.program @whole
train.program @whole sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.microbatch {
    %x = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], ["tp"]]>]}
        : () -> tensor<8x4xf32>
    %w = "test.value"() {dist.sharding = [#dist.sharding<[["tp"]]>]}
        : () -> tensor<4xf32>
    // CHECK:      %[[X:.*]] = dist.reshard
    // CHECK-SAME:   from <{{\[\[}}"dp"], ["tp"]]> to <{{\[\[}}"dp"], []]>
    // CHECK-NEXT: %[[W:.*]] = dist.reshard %{{.*}} from <{{\[\[}}"tp"]]>
    // CHECK-SAME:   to <{{\[\[}}]]>
    // CHECK-NEXT: train.rms_norm %[[X]], %[[W]]
    %n = train.rms_norm %x, %w {eps = 1.0 : f64}
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  }
}

// -----

// The three parts of the loss over a split vocabulary: a maximum over the
// vocabulary is partial by max, sums are partial by sum; both are reduced
// before the next part reads them.
// CHECK-LABEL: train.program @loss
train.program @loss sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.state @metrics metrics {dist.sharding = #dist.sharding<[[]]>}
      : tensor<4xf64>
  train.microbatch {
    %targets = train.input targets : tensor<8xi32>
    %l = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], ["tp"]]>]}
        : () -> tensor<8x16xf32>
    // CHECK:      train.cross_entropy_max
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"dp"]], unreduced = ["tp"],
    // CHECK-SAME:   reduction = "max">
    // CHECK-NEXT: %[[MAX:.*]] = dist.reshard
    // CHECK-SAME:   to <{{\[\[}}"dp"]]>
    // CHECK-NEXT: train.cross_entropy_sum %{{.*}}, %targets, %[[MAX]]
    // CHECK-SAME:   #dist.sharding<{{\[\[}}], ["dp"]], unreduced = ["tp"]>
    // CHECK-NEXT: %[[SUMS:.*]] = dist.reshard
    // CHECK-SAME:   to <{{\[\[}}], ["dp"]]>
    // CHECK:      train.cross_entropy_loss @metrics, %{{.*}}, %targets,
    // CHECK-SAME:   %[[SUMS]],
    // CHECK-SAME:   {dist.sharding = [#dist.sharding<{{\[\[}}"dp"]]>]
    %m = train.cross_entropy_max %l : (tensor<8x16xf32>) -> tensor<8xf32>
    %s = train.cross_entropy_sum %l, %targets, %m
        : (tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xf32>
    %e = train.cross_entropy_loss @metrics, %l, %targets, %s, %m
        {scale = 0.125 : f64} : (tensor<8x16xf32>, tensor<8xi32>,
            tensor<2x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  }
}
