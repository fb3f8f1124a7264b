// Every forward and backward operation survives a print and a parse, in the
// pretty and in the generic form. The inputs are the examples of the ODS
// descriptions.
// RUN: reckon-opt -allow-unregistered-dialect %s | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect -mlir-print-op-generic %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s

// CHECK: %[[T:.*]] = "test.value"() : () -> tensor<8xi32>
%tokens = "test.value"() : () -> tensor<8xi32>
// CHECK: %[[H:.*]] = "test.value"() : () -> tensor<8x64xf32>
%hidden = "test.value"() : () -> tensor<8x64xf32>
// CHECK: %[[N:.*]] = "test.value"() : () -> tensor<8x32xf32>
%narrow = "test.value"() : () -> tensor<8x32xf32>
// CHECK: %[[G:.*]] = "test.value"() : () -> tensor<64xf32>
%norm = "test.value"() : () -> tensor<64xf32>
// CHECK: %[[E:.*]] = "test.value"() : () -> tensor<256x64xf32>
%table = "test.value"() : () -> tensor<256x64xf32>
// CHECK: %[[W:.*]] = "test.value"() : () -> tensor<32x64xf32>
%weight = "test.value"() : () -> tensor<32x64xf32>
// CHECK: %[[F:.*]] = "test.value"() : () -> tensor<8x176xf32>
%ffn = "test.value"() : () -> tensor<8x176xf32>
// CHECK: %[[L:.*]] = "test.value"() : () -> tensor<8x256xf32>
%logits = "test.value"() : () -> tensor<8x256xf32>
// CHECK: %[[R:.*]] = "test.value"() : () -> tensor<8xf32>
%row = "test.value"() : () -> tensor<8xf32>
// CHECK: %[[Q:.*]] = "test.value"() : () -> tensor<128x64xf32>
%q = "test.value"() : () -> tensor<128x64xf32>
// CHECK: %[[K:.*]] = "test.value"() : () -> tensor<128x32xf32>
%k = "test.value"() : () -> tensor<128x32xf32>
// CHECK: %[[A:.*]] = "test.value"() : () -> tensor<64x16xf32>
%angles = "test.value"() : () -> tensor<64x16xf32>
// CHECK: %[[B:.*]] = "test.value"() : () -> tensor<128x64xbf16>
%qb = "test.value"() : () -> tensor<128x64xbf16>

// Forward.

// CHECK:      train.embedding %[[T]], %[[E]]
// CHECK-SAME:   : (tensor<8xi32>, tensor<256x64xf32>) -> tensor<8x64xf32>
%0 = train.embedding %tokens, %table
    : (tensor<8xi32>, tensor<256x64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.embedding %[[T]], %[[E]] {vocab_axes = ["tp"]}
%1 = train.embedding %tokens, %table {vocab_axes = ["tp"]}
    : (tensor<8xi32>, tensor<256x64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.rms_norm %[[H]], %[[G]] {eps = 1.000000e-05 : f64}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
%2 = train.rms_norm %hidden, %norm {eps = 1.0e-5 : f64}
    : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.linear %[[H]], %[[W]]
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
%3 = train.linear %hidden, %weight
    : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>

// CHECK-NEXT: train.rope %[[Q]], %[[A]]
// CHECK-SAME:   {head_dim = 16 : i64, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xf32>, tensor<64x16xf32>) -> tensor<128x64xf32>
%4 = train.rope %q, %angles {head_dim = 16 : i64, sequence_length = 64 : i64}
    : (tensor<128x64xf32>, tensor<64x16xf32>) -> tensor<128x64xf32>

// The table stays f32 whatever the precision is.
// CHECK-NEXT: train.rope %[[B]], %[[A]]
// CHECK-SAME:   {head_dim = 16 : i64, inverse, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xbf16>, tensor<64x16xf32>)
// CHECK-SAME:   -> tensor<128x64xbf16>
%5 = train.rope %qb, %angles
    {head_dim = 16 : i64, sequence_length = 64 : i64, inverse}
    : (tensor<128x64xbf16>, tensor<64x16xf32>) -> tensor<128x64xbf16>

// 128 rows are 2 sequences of 64; 64 columns are 4 heads of 16; the two
// key-value heads serve two query heads each.
// CHECK-NEXT: %o, %lse = train.attention %[[Q]], %[[K]], %[[K]]
// CHECK-SAME:   {head_dim = 16 : i64, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
// CHECK-SAME:   -> (tensor<128x64xf32>, tensor<2x4x64xf32>)
%o, %stats = train.attention %q, %k, %k
    {head_dim = 16 : i64, sequence_length = 64 : i64}
    : (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
    -> (tensor<128x64xf32>, tensor<2x4x64xf32>)

// CHECK-NEXT: train.swiglu %[[F]], %[[F]]
// CHECK-SAME:   : (tensor<8x176xf32>, tensor<8x176xf32>) -> tensor<8x176xf32>
%6 = train.swiglu %ffn, %ffn
    : (tensor<8x176xf32>, tensor<8x176xf32>) -> tensor<8x176xf32>

// CHECK-NEXT: train.add %[[H]], %[[H]]
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
%7 = train.add %hidden, %hidden
    : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>

// Loss.

// CHECK-NEXT: %[[MAX:.*]] = train.cross_entropy_max %[[L]]
// CHECK-SAME:   {vocab_axes = ["tp"]} : (tensor<8x256xf32>) -> tensor<8xf32>
%max = train.cross_entropy_max %logits {vocab_axes = ["tp"]}
    : (tensor<8x256xf32>) -> tensor<8xf32>

// CHECK-NEXT: train.cross_entropy_sum %[[L]], %[[T]], %[[MAX]]
// CHECK-SAME:   {vocab_axes = ["tp"]} : (tensor<8x256xf32>, tensor<8xi32>,
// CHECK-SAME:   tensor<8xf32>) -> tensor<2x8xf32>
%sums = train.cross_entropy_sum %logits, %tokens, %max {vocab_axes = ["tp"]}
    : (tensor<8x256xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xf32>

// CHECK:      train.cross_entropy_loss @metrics, %[[V:[0-9]+]]#0, %{{arg[0-9]}},
// CHECK-SAME:   %[[V]]#1, %[[V]]#2
// CHECK-SAME:   {scale = 9.765625E-4 : f64, vocab_axes = ["tp"]}
// CHECK-SAME:   : (tensor<8x256xf32>, tensor<8xi32>, tensor<2x8xf32>,
// CHECK-SAME:   tensor<8xf32>) -> tensor<8xf32>
train.program @loss sequence(8) micro_batch(1) micro_batches(1)
    global_batch(1) {
  train.state @metrics metrics : tensor<4xf64>
  train.microbatch {
    %t = train.input targets : tensor<8xi32>
    %lse = train.layer "head" (%t) {
    ^bb0(%targets: tensor<8xi32>):
      %l, %s, %m = "test.value"()
          : () -> (tensor<8x256xf32>, tensor<2x8xf32>, tensor<8xf32>)
      %r = train.cross_entropy_loss @metrics, %l, %targets, %s, %m
          {scale = 9.765625e-04 : f64, vocab_axes = ["tp"]}
          : (tensor<8x256xf32>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xf32>)
          -> tensor<8xf32>
      train.yield %r : tensor<8xf32>
    } : (tensor<8xi32>) -> tensor<8xf32>
  }
}

// CHECK:      train.cross_entropy_grad %[[L]], %[[T]], %[[R]]
// CHECK-SAME:   {scale = 9.765625E-4 : f64} : (tensor<8x256xf32>,
// CHECK-SAME:   tensor<8xi32>, tensor<8xf32>) -> tensor<8x256xf32>
%8 = train.cross_entropy_grad %logits, %tokens, %row
    {scale = 9.765625e-04 : f64}
    : (tensor<8x256xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8x256xf32>

// Backward.

// CHECK-NEXT: train.embedding_grad %[[H]], %[[T]] {vocab_axes = ["tp"]}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<8xi32>) -> tensor<256x64xf32>
%9 = train.embedding_grad %hidden, %tokens {vocab_axes = ["tp"]}
    : (tensor<8x64xf32>, tensor<8xi32>) -> tensor<256x64xf32>

// CHECK-NEXT: train.rms_norm_grad_input %[[H]], %[[H]], %[[G]]
// CHECK-SAME:   {eps = 1.000000e-05 : f64} : (tensor<8x64xf32>,
// CHECK-SAME:   tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
%10 = train.rms_norm_grad_input %hidden, %hidden, %norm {eps = 1.0e-5 : f64}
    : (tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.rms_norm_grad_weight %[[H]], %[[H]]
// CHECK-SAME:   {eps = 1.000000e-05 : f64}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64xf32>
%11 = train.rms_norm_grad_weight %hidden, %hidden {eps = 1.0e-5 : f64}
    : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64xf32>

// CHECK-NEXT: train.linear_grad_input %[[N]], %[[W]]
// CHECK-SAME:   : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
%12 = train.linear_grad_input %narrow, %weight
    : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.linear_grad_weight %[[N]], %[[H]]
// CHECK-SAME:   : (tensor<8x32xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>
%13 = train.linear_grad_weight %narrow, %hidden
    : (tensor<8x32xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>

// CHECK-NEXT: %dq, %dk, %dv = train.attention_grad %[[Q]], %[[Q]], %[[K]],
// CHECK-SAME:   %[[K]], %o, %lse
// CHECK-SAME:   {head_dim = 16 : i64, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>,
// CHECK-SAME:   tensor<128x32xf32>, tensor<128x64xf32>, tensor<2x4x64xf32>)
// CHECK-SAME:   -> (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
%dq, %dk, %dv = train.attention_grad %q, %q, %k, %k, %o, %stats
    {head_dim = 16 : i64, sequence_length = 64 : i64}
    : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>,
       tensor<128x32xf32>, tensor<128x64xf32>, tensor<2x4x64xf32>)
    -> (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)

// CHECK-NEXT: %dgate, %dup = train.swiglu_grad %[[F]], %[[F]], %[[F]]
// CHECK-SAME:   : (tensor<8x176xf32>, tensor<8x176xf32>, tensor<8x176xf32>)
// CHECK-SAME:   -> (tensor<8x176xf32>, tensor<8x176xf32>)
%dg, %du = train.swiglu_grad %ffn, %ffn, %ffn
    : (tensor<8x176xf32>, tensor<8x176xf32>, tensor<8x176xf32>)
    -> (tensor<8x176xf32>, tensor<8x176xf32>)
