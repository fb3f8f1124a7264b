// Transfers that others imply. 2 ranks of tp, 4 of dp; 8 x 8 values.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-fuse-collectives))" \
// RUN:   %s | FileCheck %s

// Two readers that want the same of one value share a transfer, whatever key
// caused them. Other groups, dimensions or values keep their own.
// CHECK-LABEL: train.program @share
train.program @share sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x, %y = "test.value"() : () -> (tensor<8x8xf32>, tensor<8x8xf32>)
    // CHECK:      %[[V:.*]]:2 = "test.value"()
    // CHECK-NEXT: %[[A:.*]] = dist.all_reduce %[[V]]#0 axes ["tp"]
    // CHECK-NEXT: %[[C:.*]] = dist.all_reduce %[[V]]#0 axes ["dp"]
    // CHECK-NEXT: %[[D:.*]] = dist.all_reduce %[[V]]#1 axes ["tp"]
    // CHECK-NEXT: %[[E:.*]] = dist.all_reduce %[[V]]#0 axes ["tp"] {{.*}} "max"
    // CHECK-NEXT: "test.use"(%[[A]], %[[A]], %[[C]], %[[D]], %[[E]])
    %a = dist.all_reduce %x axes ["tp"] group_size 2 reduction "sum"
        {origin = "a.yaml:1:1"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %b = dist.all_reduce %x axes ["tp"] group_size 2 reduction "sum"
        {origin = "a.yaml:2:2"} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = dist.all_reduce %x axes ["dp"] group_size 4 reduction "sum"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = dist.all_reduce %y axes ["tp"] group_size 2 reduction "sum"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %e = dist.all_reduce %x axes ["tp"] group_size 2 reduction "max"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    "test.use"(%a, %b, %c, %d, %e) : (tensor<8x8xf32>, tensor<8x8xf32>,
        tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> ()
  }
}

// -----

// Reduced and then cut over the same axes: each rank needs the sum of its part
// only.
// CHECK-LABEL: train.program @scatter
train.program @scatter sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x = "test.value"() : () -> tensor<8x8xf32>
    // By rows.
    // CHECK:      %[[X:.*]] = "test.value"()
    // CHECK-NEXT: %[[A:.*]] = dist.reduce_scatter %[[X]] axes ["tp"]
    // CHECK-SAME:   group_size 2 reduction "sum" dim 0
    // CHECK-SAME:   : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %r = dist.all_reduce %x axes ["tp"] group_size 2 reduction "sum"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %a = dist.slice %r axes ["tp"] group_size 2 dim 0
        : (tensor<8x8xf32>) -> tensor<4x8xf32>
    // Flat: 64 values over 4 ranks are 16.
    // CHECK-NEXT: %[[C:.*]] = dist.reduce_scatter %[[X]] axes ["dp"]
    // CHECK-SAME:   group_size 4 reduction "sum" :
    // CHECK-SAME:   (tensor<8x8xf32>) -> tensor<16xf32>
    %s = dist.all_reduce %x axes ["dp"] group_size 4 reduction "sum"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %b = dist.slice %s axes ["dp"] group_size 4
        : (tensor<8x8xf32>) -> tensor<16xf32>
    // CHECK-NEXT: "test.use"(%[[A]], %[[C]])
    "test.use"(%a, %b) : (tensor<4x8xf32>, tensor<16xf32>) -> ()
  }
}

// -----

// What stays: the whole sum is read too; the cut is over an axis that was not
// reduced, or over one of two that were (the order of that sum would change).
// CHECK-LABEL: train.program @no_scatter
train.program @no_scatter sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x, %y, %z = "test.value"()
        : () -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
    // CHECK-NOT: dist.reduce_scatter
    // CHECK:     dist.all_reduce
    // CHECK:     dist.slice
    // CHECK:     dist.all_reduce
    // CHECK:     dist.slice
    // CHECK:     dist.all_reduce
    // CHECK:     dist.slice
    // CHECK-NOT: dist.reduce_scatter
    // CHECK:     test.use
    %r = dist.all_reduce %x axes ["tp"] group_size 2 reduction "sum"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %a = dist.slice %r axes ["tp"] group_size 2 dim 0
        : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %s = dist.all_reduce %y axes ["tp"] group_size 2 reduction "sum"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %b = dist.slice %s axes ["dp"] group_size 4 dim 0
        : (tensor<8x8xf32>) -> tensor<2x8xf32>
    %t = dist.all_reduce %z axes ["dp", "tp"] group_size 8 reduction "sum"
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %c = dist.slice %t axes ["dp"] group_size 4 dim 0
        : (tensor<8x8xf32>) -> tensor<2x8xf32>
    "test.use"(%r, %a, %b, %c) : (tensor<8x8xf32>, tensor<4x8xf32>,
        tensor<2x8xf32>, tensor<2x8xf32>) -> ()
  }
}

// -----

// There and back again is nothing, in both orders; with another dimension it
// is something.
// CHECK-LABEL: train.program @inverse
train.program @inverse sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch {
    %x, %y = "test.value"() : () -> (tensor<4x8xf32>, tensor<8x8xf32>)
    // CHECK:      %[[V:.*]]:2 = "test.value"()
    // CHECK-NEXT: %[[G:.*]] = dist.all_gather %[[V]]#0 axes ["tp"] group_size 2
    // CHECK-SAME:   dim 0
    // CHECK-NEXT: %[[S:.*]] = dist.slice %[[G]] axes ["tp"] group_size 2 dim 1
    // CHECK-NEXT: "test.use"(%[[V]]#0, %[[V]]#1, %[[S]])
    %g = dist.all_gather %x axes ["tp"] group_size 2 dim 0
        : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %a = dist.slice %g axes ["tp"] group_size 2 dim 0
        : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %s = dist.slice %y axes ["tp"] group_size 2 dim 0
        : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %b = dist.all_gather %s axes ["tp"] group_size 2 dim 0
        : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %c = dist.slice %g axes ["tp"] group_size 2 dim 1
        : (tensor<8x8xf32>) -> tensor<8x4xf32>
    "test.use"(%a, %b, %c)
        : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>) -> ()
  }
}
