// The collective of each transition, on local shapes. The mesh has 2 ranks of
// tp and 4 of dp.
// RUN: reckon-opt -allow-unregistered-dialect \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-reshard-to-collectives))" \
// RUN:   %s | FileCheck %s

train.program @transitions sequence(8) micro_batch(1) micro_batches(1)
    global_batch(4) {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 4]
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    %f = "test.value"() : () -> tensor<16xf32>
    // CHECK: %[[X:.*]] = "test.value"() : () -> tensor<8x8xf32>
    // CHECK: %[[F:.*]] = "test.value"() : () -> tensor<16xf32>

    // Partial to whole.
    // CHECK-NEXT: dist.all_reduce %[[X]] axes ["tp"] group_size 2
    // CHECK-SAME:   reduction "sum" {origin = "a.yaml:1:1"}
    // CHECK-SAME:   : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %0 = dist.reshard %x from <[["dp"], []], unreduced = ["tp"]>
        to <[["dp"], []], origin = "a.yaml:1:1">
        : tensor<8x8xf32> -> tensor<8x8xf32>

    // Partial over two axes, by maximum: one group of 2 * 4 ranks.
    // CHECK-NEXT: dist.all_reduce %[[X]] axes ["tp", "dp"] group_size 8
    // CHECK-SAME:   reduction "max" :
    %1 = dist.reshard %x from <[[], []], unreduced = ["tp", "dp"],
        reduction = "max"> to <[[], []]> : tensor<8x8xf32> -> tensor<8x8xf32>

    // Partial to split: reduced, then cut. 8 rows over 4 ranks are 2.
    // CHECK-NEXT: %[[A:.*]] = dist.all_reduce %[[X]] axes ["dp"] group_size 4
    // CHECK-NEXT: dist.slice %[[A]] axes ["dp"] group_size 4 dim 0
    // CHECK-SAME:   : (tensor<8x8xf32>) -> tensor<2x8xf32>
    %2 = dist.reshard %x from <[[], []], unreduced = ["dp"]>
        to <[["dp"], []]> : tensor<8x8xf32> -> tensor<2x8xf32>

    // Partial to flat: 64 values over 4 ranks are 16.
    // CHECK-NEXT: %[[B:.*]] = dist.all_reduce %[[X]] axes ["dp"] group_size 4
    // CHECK-NEXT: dist.slice %[[B]] axes ["dp"] group_size 4 :
    // CHECK-SAME:   (tensor<8x8xf32>) -> tensor<16xf32>
    %3 = dist.reshard %x from <[[], []], unreduced = ["dp"]>
        to <[[], []], flat = ["dp"]> : tensor<8x8xf32> -> tensor<16xf32>

    // Partial over tp and dp, flat over dp only: the axis of the cut is reduced
    // last and on its own, so that its sum can become a reduce-scatter.
    // CHECK-NEXT: %[[C:.*]] = dist.all_reduce %[[X]] axes ["tp"] group_size 2
    // CHECK-NEXT: %[[D:.*]] = dist.all_reduce %[[C]] axes ["dp"] group_size 4
    // CHECK-NEXT: dist.slice %[[D]] axes ["dp"] group_size 4 :
    %4 = dist.reshard %x from <[[], []], unreduced = ["dp", "tp"]>
        to <[[], []], flat = ["dp"]> : tensor<8x8xf32> -> tensor<16xf32>

    // Split to whole: 8 rows of each of 2 ranks are 16.
    // CHECK-NEXT: dist.all_gather %[[X]] axes ["tp"] group_size 2 dim 0
    // CHECK-SAME:   : (tensor<8x8xf32>) -> tensor<16x8xf32>
    %5 = dist.reshard %x from <[["tp"], []]> to <[[], []]>
        : tensor<8x8xf32> -> tensor<16x8xf32>

    // Only the inner axis is gathered: dp keeps its blocks of rows.
    // CHECK-NEXT: dist.all_gather %[[X]] axes ["tp"] group_size 2 dim 0
    // CHECK-SAME:   : (tensor<8x8xf32>) -> tensor<16x8xf32>
    %6 = dist.reshard %x from <[["dp", "tp"], []]> to <[["dp"], []]>
        : tensor<8x8xf32> -> tensor<16x8xf32>

    // Flat to whole, without the padding.
    // CHECK-NEXT: dist.all_gather %[[F]] axes ["dp"] group_size 4 :
    // CHECK-SAME:   (tensor<16xf32>) -> tensor<8x8xf32>
    %7 = dist.reshard %f from <[[], []], flat = ["dp"]> to <[[], []]>
        : tensor<16xf32> -> tensor<8x8xf32>

    // Whole to split: nothing moves. 8 columns over 2 ranks are 4.
    // CHECK-NEXT: dist.slice %[[X]] axes ["tp"] group_size 2 dim 1
    // CHECK-SAME:   : (tensor<8x8xf32>) -> tensor<8x4xf32>
    %8 = dist.reshard %x from <[[], []]> to <[[], ["tp"]]>
        : tensor<8x8xf32> -> tensor<8x4xf32>

    // A further axis splits the blocks that are there.
    // CHECK-NEXT: dist.slice %[[X]] axes ["tp"] group_size 2 dim 0
    // CHECK-SAME:   : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %9 = dist.reshard %x from <[["dp"], []]> to <[["dp", "tp"], []]>
        : tensor<8x8xf32> -> tensor<4x8xf32>

    // Whole to flat.
    // CHECK-NEXT: dist.slice %[[X]] axes ["dp"] group_size 4 :
    // CHECK-SAME:   (tensor<8x8xf32>) -> tensor<16xf32>
    %10 = dist.reshard %x from <[[], []]> to <[[], []], flat = ["dp"]>
        : tensor<8x8xf32> -> tensor<16xf32>

    // Split to split: columns are cut, rows are put together.
    // CHECK-NEXT: dist.all_to_all %[[X]] axes ["tp"] group_size 2
    // CHECK-SAME:   split 1 concat 0 : (tensor<8x8xf32>) -> tensor<16x4xf32>
    %11 = dist.reshard %x from <[["tp"], []]> to <[[], ["tp"]]>
        : tensor<8x8xf32> -> tensor<16x4xf32>
  }
}
