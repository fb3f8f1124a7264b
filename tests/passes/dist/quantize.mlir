// dist-quantize: linears of decoder layers on a rank's shapes, in fp8.
// RUN: reckon-opt -split-input-file \
// RUN:   -pass-pipeline="builtin.module(train.program(dist-quantize))" %s \
// RUN:   | FileCheck %s

// Two linears of one activation, the first of two tensor ranks' parts. Their
// input is whole on each rank, their weights are parts: one message for both
// maxima, none for the input's. 24 columns are padded to 32 codes, 8 rows to 16.
// CHECK-LABEL: train.program @column
// CHECK: train.layer "layers.0"
// CHECK: %[[X:.*]] = train.add
// CHECK-DAG: %[[XM:.*]] = train.amax %[[X]] : (tensor<8x24xbf16>) -> tensor<1xf32>
// CHECK-DAG: %[[AM:.*]] = train.amax %{{.*}} : (tensor<4x24xbf16>) -> tensor<1xf32>
// CHECK-DAG: %[[BM:.*]] = train.amax %{{.*}} : (tensor<2x24xbf16>) -> tensor<1xf32>
// CHECK: %[[M:.*]]:2 = dist.all_reduce %[[AM]], %[[BM]] axes ["tp"] group_size 2 reduction "max" {origin = "t.yaml:1:1"}
// The layer saves transposed codes where its gradient only multiplies.
// CHECK: %[[C:.*]]:3 = train.cast_fp8 %[[X]], %[[XM]] straight transposed : {{.*}} -> (tensor<1xf32>, tensor<16x32xf8E4M3FN>, tensor<32x16xf8E4M3FN>)
// CHECK: %[[A:.*]]:2 = train.cast_fp8 %{{.*}}, %[[M]]#0 straight :
// CHECK: %[[Y:.*]] = train.linear_fp8 %[[C]]#1, %[[C]]#0, %[[A]]#1, %[[A]]#0 {k = 24 : i64}
// CHECK-NOT: train.cast_fp8 %[[X]],
// CHECK: train.linear_fp8 %[[C]]#1, %[[C]]#0, %{{.*}} {k = 24 : i64}
// CHECK: train.yield %[[Y]], %[[C]]#0, %[[C]]#2, %[[M]]#0 :
// The saved activation is gone: what arrives are its codes, and the maximum of
// the weight, for the cast of its transpose. dy is cast once for both products,
// in the format of gradients.
// CHECK: train.layer_grad "layers.0"
// CHECK-NEXT: ^bb0(%[[DY:.*]]: tensor<8x4xbf16>, %[[GS:.*]]: tensor<1xf32>, %[[GT:.*]]: tensor<32x16xf8E4M3FN>, %[[GM:.*]]: tensor<1xf32>):
// CHECK: %[[DM:.*]] = train.amax %[[DY]]
// CHECK: %[[DA:.*]] = dist.all_reduce %[[DM]] axes ["tp"] group_size 2 reduction "max"
// CHECK: %[[D:.*]]:3 = train.cast_fp8 %[[DY]], %[[DA]] straight transposed : {{.*}} -> (tensor<1xf32>, tensor<16x16xf8E5M2>, tensor<16x16xf8E5M2>)
// CHECK: %[[W:.*]] = train.linear_fp8 %[[D]]#2, %[[D]]#0, %[[GT]], %[[GS]] {k = 8 : i64} : {{.*}} -> tensor<4x24xf32>
// CHECK: train.accumulate @"a#gradient", %[[W]]
// CHECK: %[[WT:.*]]:2 = train.cast_fp8 %{{.*}}, %[[GM]] transposed : {{.*}} -> (tensor<1xf32>, tensor<32x16xf8E4M3FN>)
// CHECK: train.linear_fp8 %[[D]]#1, %[[D]]#0, %[[WT]]#1, %[[WT]]#0 {k = 4 : i64} : {{.*}} -> tensor<8x24xbf16>
train.program @column sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {precision = "fp8"} {
  dist.mesh @world axes ["tp"] sizes [2] {origins = {tp = "t.yaml:1:1"}}
  train.state @a parameter : tensor<4x24xbf16>
  train.state @b parameter : tensor<2x24xbf16>
  train.state @"a#gradient" gradient of @a : tensor<4x24xf32>
  train.state @"b#gradient" gradient of @b : tensor<2x24xf32>
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    %in = train.layer "embedding" (%tokens) {
    ^bb0(%t: tensor<8xi32>):
      %table = train.read @a : tensor<4x24xbf16>
      %e = train.embedding %t, %table
          : (tensor<8xi32>, tensor<4x24xbf16>) -> tensor<8x24xbf16>
      train.yield %e : tensor<8x24xbf16>
    } : (tensor<8xi32>) -> tensor<8x24xbf16>
    %y, %s = train.layer "layers.0" (%in) {
    ^bb0(%arg: tensor<8x24xbf16>):
      %x = train.add %arg, %arg
          : (tensor<8x24xbf16>, tensor<8x24xbf16>) -> tensor<8x24xbf16>
      %wa = train.read @a : tensor<4x24xbf16>
      %1 = train.linear %x, %wa {operand_axes = [[], ["tp"]]}
          : (tensor<8x24xbf16>, tensor<4x24xbf16>) -> tensor<8x4xbf16>
      %wb = train.read @b : tensor<2x24xbf16>
      %2 = train.linear %x, %wb {operand_axes = [[], ["tp"]]}
          : (tensor<8x24xbf16>, tensor<2x24xbf16>) -> tensor<8x2xbf16>
      train.yield %1, %x : tensor<8x4xbf16>, tensor<8x24xbf16>
    } : (tensor<8x24xbf16>) -> (tensor<8x4xbf16>, tensor<8x24xbf16>)
    %dx = train.layer_grad "layers.0" (%y, %s) {
    ^bb0(%dy: tensor<8x4xbf16>, %x: tensor<8x24xbf16>):
      %dw = train.linear_grad_weight %dy, %x {operand_axes = [["tp"], []]}
          : (tensor<8x4xbf16>, tensor<8x24xbf16>) -> tensor<4x24xf32>
      train.accumulate @"a#gradient", %dw : tensor<4x24xf32>
      %wa = train.read @a : tensor<4x24xbf16>
      %d = train.linear_grad_input %dy, %wa {operand_axes = [["tp"], ["tp"]]}
          : (tensor<8x4xbf16>, tensor<4x24xbf16>) -> tensor<8x24xbf16>
      train.yield %d : tensor<8x24xbf16>
    } : (tensor<8x4xbf16>, tensor<8x24xbf16>) -> tensor<8x24xbf16>
    train.yield
  }
}

// -----

// What another op of the backward reads stays as it is; its maximum is saved,
// which is reduced once. The head is left alone, and so are its notes.
// CHECK-LABEL: train.program @row
// CHECK: train.layer "layers.0"
// CHECK: %[[O:.*]] = train.add
// CHECK: %[[R:.*]]:2 = dist.all_reduce %{{.*}}, %{{.*}} axes ["tp"] group_size 2 reduction "max"
// CHECK: train.cast_fp8 %[[O]], %[[R]]#0 straight :
// CHECK: train.yield %{{[^,]*}}, %[[O]], %[[R]]#0 : tensor<8x4xbf16>, tensor<8x4xbf16>, tensor<1xf32>
// CHECK: train.layer_grad "layers.0"
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<8x4xbf16>, %[[S:.*]]: tensor<8x4xbf16>, %[[M:.*]]: tensor<1xf32>):
// CHECK: train.cast_fp8 %[[S]], %[[M]] transposed :
// CHECK: train.add %[[S]], %[[S]]
// CHECK: train.layer "head"
// CHECK: train.linear %{{[^:]*}} : (
// CHECK-NOT: operand_axes
train.program @row sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {precision = "fp8"} {
  dist.mesh @world axes ["tp"] sizes [2]
  train.state @a parameter : tensor<4x4xbf16>
  train.state @"a#gradient" gradient of @a : tensor<4x4xf32>
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    %in = train.layer "embedding" (%tokens) {
    ^bb0(%t: tensor<8xi32>):
      %table = train.read @a : tensor<4x4xbf16>
      %e = train.embedding %t, %table
          : (tensor<8xi32>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
      train.yield %e : tensor<8x4xbf16>
    } : (tensor<8xi32>) -> tensor<8x4xbf16>
    %y, %s = train.layer "layers.0" (%in) {
    ^bb0(%arg: tensor<8x4xbf16>):
      %o = train.add %arg, %arg
          : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
      %w = train.read @a : tensor<4x4xbf16>
      %1 = train.linear %o, %w {operand_axes = [["tp"], ["tp"]]}
          : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
      train.yield %1, %o : tensor<8x4xbf16>, tensor<8x4xbf16>
    } : (tensor<8x4xbf16>) -> (tensor<8x4xbf16>, tensor<8x4xbf16>)
    %dx = train.layer_grad "layers.0" (%y, %s) {
    ^bb0(%dy: tensor<8x4xbf16>, %o: tensor<8x4xbf16>):
      %dw = train.linear_grad_weight %dy, %o {operand_axes = [[], ["tp"]]}
          : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4x4xf32>
      train.accumulate @"a#gradient", %dw : tensor<4x4xf32>
      %d = train.add %o, %o
          : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
      train.yield %d : tensor<8x4xbf16>
    } : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<8x4xbf16>
    train.layer "head" (%y) {
    ^bb0(%arg: tensor<8x4xbf16>):
      %w = train.read @a : tensor<4x4xbf16>
      %logits = train.linear %arg, %w {operand_axes = [[], ["tp"]]}
          : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
      train.yield
    } : (tensor<8x4xbf16>) -> ()
    train.yield
  }
}

// -----

// Another precision is left alone.
// CHECK-LABEL: train.program @bf16
// CHECK: train.linear
// CHECK-NOT: train.amax
train.program @bf16 sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) attributes {precision = "bf16"} {
  dist.mesh @world axes ["tp"] sizes [1]
  train.state @a parameter : tensor<4x4xbf16>
  train.microbatch {
    %tokens = train.input tokens : tensor<8xi32>
    train.layer "layers.0" (%tokens) {
    ^bb0(%t: tensor<8xi32>):
      %w = train.read @a : tensor<4x4xbf16>
      %e = train.embedding %t, %w
          : (tensor<8xi32>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
      %1 = train.linear %e, %w
          : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
      train.yield
    } : (tensor<8xi32>) -> ()
    train.yield
  }
}
