// Sequence parallelism: between the split weights, activations are split over
// tp by tokens. The mesh has 2 ranks of tp and 2 of dp.
// RUN: reckon-opt -allow-unregistered-dialect \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-propagate))" \
// RUN:   %s | FileCheck %s

train.program @sequence sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {config = {sequence_parallel = true}} {
  dist.mesh @world axes ["tp", "dp"] sizes [2, 2]
  train.state @up parameter {dist.sharding = #dist.sharding<[["tp"], []]>}
      : tensor<6x4xf32>
  train.state @down parameter {dist.sharding = #dist.sharding<[[], ["tp"]]>}
      : tensor<4x6xf32>
  train.state @norm parameter {dist.sharding = #dist.sharding<[[]]>}
      : tensor<4xf32>
  train.state @"norm#gradient" gradient of @norm {dist.sharding =
      #dist.sharding<[[]], unreduced = ["dp", "tp"]>} : tensor<4xf32>
  train.microbatch {
    %x = "test.value"() {dist.sharding = [#dist.sharding<[["dp", "tp"], []]>]}
        : () -> tensor<8x4xf32>
    %nw = train.read @norm : tensor<4xf32>
    %u = train.read @up : tensor<6x4xf32>
    %d = train.read @down : tensor<4x6xf32>
    // The norm works on this rank's tokens.
    // CHECK:      %[[N:.*]] = train.rms_norm
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"dp", "tp"], []]>
    %n = train.rms_norm %x, %nw {eps = 1.0 : f64}
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
    // In front of a weight that tp splits, tokens give way: they are gathered.
    // CHECK-NEXT: %[[A:.*]] = dist.reshard %[[N]]
    // CHECK-SAME:   from <{{\[\[}}"dp", "tp"], []]> to <{{\[\[}}"dp"], []]>
    // CHECK-NEXT: %[[H:.*]] = train.linear %[[A]]
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"dp"], ["tp"]]>
    %h = train.linear %n, %u
        : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    // CHECK-NEXT: %[[P:.*]] = train.linear %[[H]]
    // CHECK-SAME:   unreduced = ["tp"]
    %p = train.linear %h, %d
        : (tensor<8x6xf32>, tensor<4x6xf32>) -> tensor<8x4xf32>
    // Reduced and cut to this rank's tokens in one go.
    // CHECK-NEXT: %[[R:.*]] = dist.reshard %[[P]]
    // CHECK-SAME:   from <{{\[\[}}"dp"], []], unreduced = ["tp"]>
    // CHECK-SAME:   to <{{\[\[}}"dp", "tp"], []]>
    // CHECK-NEXT: %[[Y:.*]] = train.add %{{.*}}, %[[R]]
    // CHECK-SAME:   #dist.sharding<{{\[\[}}"dp", "tp"], []]>
    %y = train.add %x, %p
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    // A norm's weight sees other tokens on every rank: its gradient is partial
    // over tp as well.
    // CHECK-NEXT: train.rms_norm_grad_weight
    // CHECK-SAME:   #dist.sharding<{{\[\[}}]], unreduced = ["dp", "tp"]>
    %dn = train.rms_norm_grad_weight %y, %x {eps = 1.0 : f64}
        : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4xf32>
    train.accumulate @"norm#gradient", %dn : tensor<4xf32>
  }
}
