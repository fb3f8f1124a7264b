// Every forward and backward operation survives a print and a parse, in the
// pretty and in the generic form. The inputs are the examples of the ODS
// descriptions.
// RUN: reckon-opt -allow-unregistered-dialect %s | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect -mlir-print-op-generic %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s

%tokens = "test.value"() : () -> tensor<8xi32>
%hidden = "test.value"() : () -> tensor<8x64xf32>
%narrow = "test.value"() : () -> tensor<8x32xf32>
%norm = "test.value"() : () -> tensor<64xf32>
%table = "test.value"() : () -> tensor<256x64xf32>
%weight = "test.value"() : () -> tensor<32x64xf32>
%ffn = "test.value"() : () -> tensor<8x176xf32>
%logits = "test.value"() : () -> tensor<8x256xf32>
%row = "test.value"() : () -> tensor<8xf32>
%q = "test.value"() : () -> tensor<128x64xf32>
%k = "test.value"() : () -> tensor<128x32xf32>
%angles = "test.value"() : () -> tensor<64x16xf32>
%qb = "test.value"() : () -> tensor<128x64xbf16>

// Forward.

// CHECK:      train.embedding %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   : (tensor<8xi32>, tensor<256x64xf32>) -> tensor<8x64xf32>
%0 = train.embedding %tokens, %table
    : (tensor<8xi32>, tensor<256x64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.embedding %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {vocab_axes = ["tp"]}
%1 = train.embedding %tokens, %table {vocab_axes = ["tp"]}
    : (tensor<8xi32>, tensor<256x64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.rms_norm %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {eps = 1.000000e-05 : f64}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
%2 = train.rms_norm %hidden, %norm {eps = 1.0e-5 : f64}
    : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.linear %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
%3 = train.linear %hidden, %weight
    : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>

// CHECK-NEXT: train.rope %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   {head_dim = 16 : i64, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xf32>, tensor<64x16xf32>) -> tensor<128x64xf32>
%4 = train.rope %q, %angles {head_dim = 16 : i64, sequence_length = 64 : i64}
    : (tensor<128x64xf32>, tensor<64x16xf32>) -> tensor<128x64xf32>

// The table stays f32 whatever the precision is.
// CHECK-NEXT: train.rope
// CHECK-SAME:   {head_dim = 16 : i64, inverse, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xbf16>, tensor<64x16xf32>)
// CHECK-SAME:   -> tensor<128x64xbf16>
%5 = train.rope %qb, %angles
    {head_dim = 16 : i64, sequence_length = 64 : i64, inverse}
    : (tensor<128x64xbf16>, tensor<64x16xf32>) -> tensor<128x64xbf16>

// 128 rows are 2 sequences of 64; 64 columns are 4 heads of 16; the two
// key-value heads serve two query heads each.
// CHECK-NEXT: %o, %lse = train.attention %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   {head_dim = 16 : i64, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
// CHECK-SAME:   -> (tensor<128x64xf32>, tensor<2x4x64xf32>)
%o, %stats = train.attention %q, %k, %k
    {head_dim = 16 : i64, sequence_length = 64 : i64}
    : (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
    -> (tensor<128x64xf32>, tensor<2x4x64xf32>)

// CHECK-NEXT: train.swiglu %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   : (tensor<8x176xf32>, tensor<8x176xf32>) -> tensor<8x176xf32>
%6 = train.swiglu %ffn, %ffn
    : (tensor<8x176xf32>, tensor<8x176xf32>) -> tensor<8x176xf32>

// CHECK-NEXT: train.add %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
%7 = train.add %hidden, %hidden
    : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>

// Loss.

// CHECK-NEXT: %[[MAX:.*]] = train.cross_entropy_max %{{[a-z0-9]+}}
// CHECK-SAME:   {vocab_axes = ["tp"]} : (tensor<8x256xf32>) -> tensor<8xf32>
%max = train.cross_entropy_max %logits {vocab_axes = ["tp"]}
    : (tensor<8x256xf32>) -> tensor<8xf32>

// CHECK-NEXT: train.cross_entropy_sum %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %[[MAX]]
// CHECK-SAME:   {vocab_axes = ["tp"]} : (tensor<8x256xf32>, tensor<8xi32>,
// CHECK-SAME:   tensor<8xf32>) -> tensor<2x8xf32>
%sums = train.cross_entropy_sum %logits, %tokens, %max {vocab_axes = ["tp"]}
    : (tensor<8x256xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xf32>

// CHECK:      train.cross_entropy_loss @metrics, %[[V:[0-9]+]]#0, %{{[a-z0-9]+}},
// CHECK-SAME:   %[[V]]#1, %[[V]]#2 {scale = 9.765625E-4 : f64, vocab_axes = ["tp"]}
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

// CHECK:      train.cross_entropy_grad %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   {scale = 9.765625E-4 : f64} : (tensor<8x256xf32>,
// CHECK-SAME:   tensor<8xi32>, tensor<8xf32>) -> tensor<8x256xf32>
%8 = train.cross_entropy_grad %logits, %tokens, %row
    {scale = 9.765625e-04 : f64}
    : (tensor<8x256xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8x256xf32>

// Backward.

// CHECK-NEXT: train.embedding_grad %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {vocab_axes = ["tp"]}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<8xi32>) -> tensor<256x64xf32>
%9 = train.embedding_grad %hidden, %tokens {vocab_axes = ["tp"]}
    : (tensor<8x64xf32>, tensor<8xi32>) -> tensor<256x64xf32>

// CHECK-NEXT: train.rms_norm_grad_input %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   {eps = 1.000000e-05 : f64} : (tensor<8x64xf32>,
// CHECK-SAME:   tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
%10 = train.rms_norm_grad_input %hidden, %hidden, %norm {eps = 1.0e-5 : f64}
    : (tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.rms_norm_grad_weight %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   {eps = 1.000000e-05 : f64}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64xf32>
%11 = train.rms_norm_grad_weight %hidden, %hidden {eps = 1.0e-5 : f64}
    : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64xf32>

// CHECK-NEXT: train.linear_grad_input %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
%12 = train.linear_grad_input %narrow, %weight
    : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: train.linear_grad_weight %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   : (tensor<8x32xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>
%13 = train.linear_grad_weight %narrow, %hidden
    : (tensor<8x32xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>

// CHECK-NEXT: %dq, %dk, %dv = train.attention_grad %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}},
// CHECK-SAME:   %{{[a-z0-9]+}}, %o, %lse
// CHECK-SAME:   {head_dim = 16 : i64, sequence_length = 64 : i64}
// CHECK-SAME:   : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>,
// CHECK-SAME:   tensor<128x32xf32>, tensor<128x64xf32>, tensor<2x4x64xf32>)
// CHECK-SAME:   -> (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
%dq, %dk, %dv = train.attention_grad %q, %q, %k, %k, %o, %stats
    {head_dim = 16 : i64, sequence_length = 64 : i64}
    : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>,
       tensor<128x32xf32>, tensor<128x64xf32>, tensor<2x4x64xf32>)
    -> (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)

// CHECK-NEXT: %dgate, %dup = train.swiglu_grad %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}
// CHECK-SAME:   : (tensor<8x176xf32>, tensor<8x176xf32>, tensor<8x176xf32>)
// CHECK-SAME:   -> (tensor<8x176xf32>, tensor<8x176xf32>)
%dg, %du = train.swiglu_grad %ffn, %ffn, %ffn
    : (tensor<8x176xf32>, tensor<8x176xf32>, tensor<8x176xf32>)
    -> (tensor<8x176xf32>, tensor<8x176xf32>)
