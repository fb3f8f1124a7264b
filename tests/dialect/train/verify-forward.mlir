// Rules of the forward operations and the loss, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// Shapes are static.
%a = "test.value"() : () -> tensor<?x4xf32>
// expected-error @+1 {{operand 0 must have a static shape, got 'tensor<?x4xf32>'}}
%0 = train.add %a, %a
    : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<8x4xf32>

// -----

// Ranks are those of the sharding rule.
%a = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{operand 0 must have rank 2 (th), got 'tensor<8xf32>'}}
%0 = train.add %a, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>

// -----

// One letter, one size.
%a = "test.value"() : () -> tensor<8x4xf32>
%b = "test.value"() : () -> tensor<8x2xf32>
// expected-error @+1 {{operand 1 has 2 for dimension 'h' where another operand has 4}}
%0 = train.add %a, %b : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<8x4xf32>

// -----

// Results have the sizes of their letters as well.
%a = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{result 0 has 4 for dimension 't' where another operand has 8}}
%0 = train.add %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>

// -----

// Kernels compute in f32 or bf16.
%a = "test.value"() : () -> tensor<8x4xi32>
// expected-error @+1 {{computes in f32 or bf16, got 'tensor<8x4xi32>'}}
%0 = train.add %a, %a : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>

// -----

// add: one precision.
%a = "test.value"() : () -> tensor<8x4xf32>
%b = "test.value"() : () -> tensor<8x4xbf16>
// expected-error @+1 {{mixes precisions: 'tensor<8x4xf32>' and 'tensor<8x4xbf16>'}}
%0 = train.add %a, %b : (tensor<8x4xf32>, tensor<8x4xbf16>) -> tensor<8x4xf32>

// -----

// embedding: tokens are ids.
%t = "test.value"() : () -> tensor<8xi64>
%w = "test.value"() : () -> tensor<16x4xf32>
// expected-error @+1 {{token ids must be i32, got 'tensor<8xi64>'}}
%0 = train.embedding %t, %w
    : (tensor<8xi64>, tensor<16x4xf32>) -> tensor<8x4xf32>

// -----

// embedding: rows come as they are in the table.
%t = "test.value"() : () -> tensor<8xi32>
%w = "test.value"() : () -> tensor<16x4xbf16>
// expected-error @+1 {{mixes precisions: 'tensor<16x4xbf16>' and 'tensor<8x4xf32>'}}
%0 = train.embedding %t, %w
    : (tensor<8xi32>, tensor<16x4xbf16>) -> tensor<8x4xf32>

// -----

// rms_norm: one weight per column.
%x = "test.value"() : () -> tensor<8x4xf32>
%w = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{operand 1 has 8 for dimension 'h' where another operand has 4}}
%0 = train.rms_norm %x, %w {eps = 1.0e-5 : f64}
    : (tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xf32>

// -----

// rms_norm: one precision.
%x = "test.value"() : () -> tensor<8x4xbf16>
%w = "test.value"() : () -> tensor<4xf32>
// expected-error @+1 {{mixes precisions: 'tensor<8x4xbf16>' and 'tensor<4xf32>'}}
%0 = train.rms_norm %x, %w {eps = 1.0e-5 : f64}
    : (tensor<8x4xbf16>, tensor<4xf32>) -> tensor<8x4xbf16>

// -----

// linear: the weight is not transposed: one row per output feature.
%x = "test.value"() : () -> tensor<8x4xf32>
%w = "test.value"() : () -> tensor<4x2xf32>
// expected-error @+1 {{operand 1 has 2 for dimension 'k' where another operand has 4}}
%0 = train.linear %x, %w
    : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>

// -----

// linear: one precision.
%x = "test.value"() : () -> tensor<8x4xbf16>
%w = "test.value"() : () -> tensor<2x4xbf16>
// expected-error @+1 {{mixes precisions: 'tensor<8x4xbf16>' and 'tensor<8x2xf32>'}}
%0 = train.linear %x, %w
    : (tensor<8x4xbf16>, tensor<2x4xbf16>) -> tensor<8x2xf32>

// -----

// rope: whole heads.
%x = "test.value"() : () -> tensor<8x6xf32>
%r = "test.value"() : () -> tensor<4x4xf32>
// expected-error @+1 {{operand has 6 columns, not a multiple of head_dim 4}}
%0 = train.rope %x, %r {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x6xf32>, tensor<4x4xf32>) -> tensor<8x6xf32>

// -----

// rope: whole sequences.
%x = "test.value"() : () -> tensor<6x4xf32>
%r = "test.value"() : () -> tensor<4x4xf32>
// expected-error @+1 {{has 6 rows, not a multiple of sequence_length 4}}
%0 = train.rope %x, %r {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>

// -----

// rope: a head has columns, a sequence has rows.
%x = "test.value"() : () -> tensor<8x4xf32>
%r = "test.value"() : () -> tensor<4x4xf32>
// expected-error @+1 {{operand has 4 columns, not a multiple of head_dim 0}}
%0 = train.rope %x, %r {head_dim = 0 : i64, sequence_length = 0 : i64}
    : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>

// -----

// rope: the table has one row per position, in f32.
%x = "test.value"() : () -> tensor<8x4xbf16>
%r = "test.value"() : () -> tensor<4x4xbf16>
// expected-error @+1 {{table must be 'tensor<4x4xf32>', got 'tensor<4x4xbf16>'}}
%0 = train.rope %x, %r {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>

// -----

// attention: queries and keys are of the same tokens.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<4x4xf32>
// expected-error @+1 {{query has 8 rows, key 4}}
%0:2 = train.attention %q, %k, %k
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
    -> (tensor<8x8xf32>, tensor<2x2x4xf32>)

// -----

// attention: keys are whole heads too.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x2xf32>
// expected-error @+1 {{key has 2 columns, not a multiple of head_dim 4}}
%0:2 = train.attention %q, %k, %k
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x2xf32>, tensor<8x2xf32>)
    -> (tensor<8x8xf32>, tensor<2x2x4xf32>)

// -----

// attention: keys and values go together.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{value must have the type of the key, 'tensor<8x4xf32>', got 'tensor<8x8xf32>'}}
%0:2 = train.attention %q, %k, %q
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x8xf32>)
    -> (tensor<8x8xf32>, tensor<2x2x4xf32>)

// -----

// attention: one precision.
%q = "test.value"() : () -> tensor<8x8xbf16>
%k = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{mixes precisions: 'tensor<8x8xbf16>' and 'tensor<8x4xf32>'}}
%0:2 = train.attention %q, %k, %k
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xbf16>, tensor<8x4xf32>, tensor<8x4xf32>)
    -> (tensor<8x8xbf16>, tensor<2x2x4xf32>)

// -----

// attention: query heads share key-value heads evenly.
%q = "test.value"() : () -> tensor<8x12xf32>
%k = "test.value"() : () -> tensor<8x8xf32>
// expected-error @+1 {{2 key-value heads do not divide 3 query heads}}
%0:2 = train.attention %q, %k, %k
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x12xf32>, tensor<8x8xf32>, tensor<8x8xf32>)
    -> (tensor<8x12xf32>, tensor<2x3x4xf32>)

// -----

// attention: one log-sum-exp per sequence, head and position, in f32.
// 8 rows are 2 sequences of 4; 8 columns are 2 heads of 4.
%q = "test.value"() : () -> tensor<8x8xbf16>
%k = "test.value"() : () -> tensor<8x4xbf16>
// expected-error @+1 {{log-sum-exp must be 'tensor<2x2x4xf32>', got 'tensor<2x2x4xbf16>'}}
%0:2 = train.attention %q, %k, %k
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xbf16>, tensor<8x4xbf16>, tensor<8x4xbf16>)
    -> (tensor<8x8xbf16>, tensor<2x2x4xbf16>)

// -----

// attention: the output is shaped like the query.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{result must have the type of the query, 'tensor<8x8xf32>', got 'tensor<8x4xf32>'}}
%0:2 = train.attention %q, %k, %k
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
    -> (tensor<8x4xf32>, tensor<2x2x4xf32>)

// -----

// swiglu: gate and up have one shape.
%g = "test.value"() : () -> tensor<8x6xf32>
%u = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{operand 1 has 4 for dimension 'f' where another operand has 6}}
%0 = train.swiglu %g, %u
    : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<8x6xf32>

// -----

// swiglu: one precision.
%g = "test.value"() : () -> tensor<8x6xbf16>
// expected-error @+1 {{mixes precisions: 'tensor<8x6xbf16>' and 'tensor<8x6xf32>'}}
%0 = train.swiglu %g, %g
    : (tensor<8x6xbf16>, tensor<8x6xbf16>) -> tensor<8x6xf32>
