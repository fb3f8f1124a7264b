// Program, states and layers survive a print and a parse, in the pretty and in
// the generic form.
// RUN: reckon-opt %s | FileCheck %s
// RUN: reckon-opt %s | reckon-opt | FileCheck %s
// RUN: reckon-opt -mlir-print-op-generic %s | reckon-opt | FileCheck %s

// CHECK:      train.program @tiny sequence(64) micro_batch(2) micro_batches(4)
// CHECK-SAME:   global_batch(16) attributes {config = {seed = 7 : i64},
// CHECK-SAME:   pipeline_layout = array<i64: 1, 1>, precision = "bf16"}
train.program @tiny sequence(64) micro_batch(2) micro_batches(4)
    global_batch(16) attributes {config = {seed = 7 : i64},
        pipeline_layout = array<i64: 1, 1>, precision = "bf16"} {
  // Every role, in the order of roles.
  // CHECK-NEXT: train.state @w parameter decay
  // CHECK-SAME:   {init = {kind = "normal", stddev = 2.000000e-02 : f64},
  // CHECK-SAME:   tensor_parallel_dim = 1 : i64} : tensor<8x8xbf16>
  train.state @w parameter decay
      {init = {kind = "normal", stddev = 0.02}, tensor_parallel_dim = 1 : i64}
      : tensor<8x8xbf16>
  // CHECK-NEXT: train.state @model.norm.weight parameter
  // CHECK-SAME:   {init = {kind = "ones"}} : tensor<64xf32>
  train.state @"model.norm.weight" parameter {init = {kind = "ones"}}
      : tensor<64xf32>
  // CHECK-NEXT: train.state @"model.norm.weight#gradient" gradient of
  // CHECK-SAME:   @model.norm.weight : tensor<64xf32>
  train.state @"model.norm.weight#gradient" gradient of @"model.norm.weight"
      : tensor<64xf32>
  // CHECK-NEXT: train.state @"w#main_weight" main_weight of @w : tensor<16xf32>
  train.state @"w#main_weight" main_weight of @w : tensor<16xf32>
  // A state after dist-partition: 8 x 8 over two ranks of tp by columns, the
  // rest flat over two ranks of dp: 8 * 4 / 2 = 16.
  // CHECK-NEXT: train.state @"w#momentum" momentum of @w
  // CHECK-SAME:   {box_axes = {{\[\[}}], ["tp"]], flat_axes = ["dp"],
  // CHECK-SAME:   global_shape = array<i64: 8, 8>, replica_axes = []}
  // CHECK-SAME:   : tensor<16xf32>
  train.state @"w#momentum" momentum of @w
      {global_shape = array<i64: 8, 8>, box_axes = [[], ["tp"]],
       flat_axes = ["dp"], replica_axes = []} : tensor<16xf32>
  // CHECK-NEXT: train.state @"w#variance" variance of @w : tensor<16xf32>
  train.state @"w#variance" variance of @w : tensor<16xf32>
  // CHECK-NEXT: train.state @rope.table buffer
  // CHECK-SAME:   {init = {kind = "rope", rope = array<f64:
  train.state @rope.table buffer
      {init = {kind = "rope", rope = array<f64: 1.0e4, 1.0, 1.0, 1.0, 0.0>}}
      : tensor<64x16xf32>
  // CHECK-NEXT: train.state @scalars scalars : tensor<8xf64>
  train.state @scalars scalars : tensor<8xf64>
  // CHECK-NEXT: train.state @metrics metrics {init = {kind = "zeros"}}
  train.state @metrics metrics {init = {kind = "zeros"}} : tensor<4xf64>

  // CHECK-NEXT: train.microbatch {
  train.microbatch {
    // CHECK-NEXT: %tokens = train.input tokens : tensor<512xi32>
    // CHECK-NEXT: %targets = train.input targets : tensor<512xi32>
    %tokens = train.input tokens : tensor<512xi32>
    %targets = train.input targets : tensor<512xi32>
    // Two results: the activation and a saved value.
    // CHECK:      %[[Y:.*]]:2 = train.layer "layers.0"(%tokens)
    // CHECK-SAME:   attributes {stage = 1 : i64} {
    // CHECK-NEXT: ^bb0(%{{.*}}: tensor<512xi32>):
    // CHECK-NEXT:   %norm = train.read @model.norm.weight : tensor<64xf32>
    // CHECK-NEXT:   train.yield %norm, %norm : tensor<64xf32>, tensor<64xf32>
    // CHECK-NEXT: } : (tensor<512xi32>) -> (tensor<64xf32>, tensor<64xf32>)
    %y, %n = train.layer "layers.0" (%tokens) attributes {stage = 1 : i64} {
    ^bb0(%arg: tensor<512xi32>):
      %w = train.read @"model.norm.weight" : tensor<64xf32>
      train.yield %w, %w : tensor<64xf32>, tensor<64xf32>
    } : (tensor<512xi32>) -> (tensor<64xf32>, tensor<64xf32>)
    // CHECK-NEXT: train.layer_grad "layers.0"(%[[Y]]#1, %targets) {
    // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<64xf32>, %{{.*}}: tensor<512xi32>):
    // CHECK-NEXT:   train.accumulate @"model.norm.weight#gradient", %[[A]]
    // CHECK-SAME:     : tensor<64xf32>
    // CHECK-NEXT:   train.yield{{$}}
    // CHECK-NEXT: } : (tensor<64xf32>, tensor<512xi32>) -> ()
    train.layer_grad "layers.0" (%n, %targets) {
    ^bb0(%a: tensor<64xf32>, %t: tensor<512xi32>):
      train.accumulate @"model.norm.weight#gradient", %a : tensor<64xf32>
      train.yield
    } : (tensor<64xf32>, tensor<512xi32>) -> ()
    train.yield
  }

  // CHECK:      train.update {
  // CHECK-NEXT:   train.fill_zero @metrics
  // CHECK-NEXT:   %d_norm = train.read @"model.norm.weight#gradient"
  // CHECK-NEXT:   train.sum_squares @metrics, %d_norm, %d_norm
  // CHECK-SAME:     {replica_axes = {{\[\[}}"tp", "dp"], []]}
  // CHECK-SAME:     : tensor<64xf32>, tensor<64xf32>
  // CHECK-NEXT:   train.clip_factor @metrics {clip = 1.000000e+00 : f64}
  train.update {
    train.fill_zero @metrics
    %g = train.read @"model.norm.weight#gradient" : tensor<64xf32>
    train.sum_squares @metrics, %g, %g {replica_axes = [["tp", "dp"], []]}
        : tensor<64xf32>, tensor<64xf32>
    train.clip_factor @metrics {clip = 1.0 : f64}
    // The gradient is this rank's flat part and f32, the new value has the
    // parameter's type.
    // CHECK-NEXT: %[[M:.*]] = train.read @"w#momentum" : tensor<16xf32>
    // CHECK-NEXT: train.adamw @w, %[[M]] metrics @metrics scalars @scalars
    // CHECK-SAME:   {beta1 = 5.000000e-01 : f64, beta2 = 2.500000e-01 : f64,
    // CHECK-SAME:   eps = 1.000000e-08 : f64,
    // CHECK-SAME:   weight_decay = 1.250000e-01 : f64}
    // CHECK-SAME:   : (tensor<16xf32>) -> tensor<16xbf16>
    %part = train.read @"w#momentum" : tensor<16xf32>
    %p = train.adamw @w, %part metrics @metrics scalars @scalars
        {beta1 = 0.5, beta2 = 0.25, eps = 1.0e-8, weight_decay = 0.125}
        : (tensor<16xf32>) -> tensor<16xbf16>
    // CHECK-NEXT: train.write @model.norm.weight, %d_norm : tensor<64xf32>
    train.write @"model.norm.weight", %g : tensor<64xf32>
    train.yield
  }
}

// What the terminator leaves out comes back: both regions end in train.yield.
// CHECK:      train.program @empty
// CHECK-SAME:   global_batch(1) {
// CHECK-NEXT:   train.microbatch {
// CHECK-NEXT:   }
// CHECK-NEXT:   train.update {
// CHECK-NEXT:   }
train.program @empty sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.microbatch { train.yield }
  train.update { }
}
