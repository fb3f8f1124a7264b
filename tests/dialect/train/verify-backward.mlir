// Rules of the backward operations, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// embedding_grad: tokens are ids.
%d = "test.value"() : () -> tensor<8x4xf32>
%t = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{token ids must be i32, got 'tensor<8xf32>'}}
%0 = train.embedding_grad %d, %t
    : (tensor<8x4xf32>, tensor<8xf32>) -> tensor<16x4xf32>

// -----

// embedding_grad: weight gradients are f32 in every precision.
%d = "test.value"() : () -> tensor<8x4xbf16>
%t = "test.value"() : () -> tensor<8xi32>
// expected-error @+1 {{weight gradient must be f32, got 'tensor<16x4xbf16>'}}
%0 = train.embedding_grad %d, %t
    : (tensor<8x4xbf16>, tensor<8xi32>) -> tensor<16x4xbf16>

// -----

// embedding_grad: one token per row.
%d = "test.value"() : () -> tensor<8x4xf32>
%t = "test.value"() : () -> tensor<6xi32>
// expected-error @+1 {{operand 1 has 6 for dimension 't' where another operand has 8}}
%0 = train.embedding_grad %d, %t
    : (tensor<8x4xf32>, tensor<6xi32>) -> tensor<16x4xf32>

// -----

// rms_norm_grad_input: dy is shaped like x.
%d = "test.value"() : () -> tensor<8x4xf32>
%x = "test.value"() : () -> tensor<6x4xf32>
%w = "test.value"() : () -> tensor<4xf32>
// expected-error @+1 {{operand 1 has 6 for dimension 't' where another operand has 8}}
%0 = train.rms_norm_grad_input %d, %x, %w {eps = 1.0e-5 : f64}
    : (tensor<8x4xf32>, tensor<6x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>

// -----

// rms_norm_grad_input: one precision.
%d = "test.value"() : () -> tensor<8x4xf32>
%w = "test.value"() : () -> tensor<4xbf16>
// expected-error @+1 {{mixes precisions: 'tensor<8x4xf32>' and 'tensor<4xbf16>'}}
%0 = train.rms_norm_grad_input %d, %d, %w {eps = 1.0e-5 : f64}
    : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xbf16>) -> tensor<8x4xf32>

// -----

// rms_norm_grad_weight: weight gradients are f32 in every precision.
%d = "test.value"() : () -> tensor<8x4xbf16>
// expected-error @+1 {{weight gradient must be f32, got 'tensor<4xbf16>'}}
%0 = train.rms_norm_grad_weight %d, %d {eps = 1.0e-5 : f64}
    : (tensor<8x4xbf16>, tensor<8x4xbf16>) -> tensor<4xbf16>

// -----

// rms_norm_grad_weight: rows are summed, columns stay.
%d = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{result 0 has 8 for dimension 'h' where another operand has 4}}
%0 = train.rms_norm_grad_weight %d, %d {eps = 1.0e-5 : f64}
    : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8xf32>

// -----

// linear_grad_input: dy has a column per row of the weight.
%d = "test.value"() : () -> tensor<8x2xf32>
%w = "test.value"() : () -> tensor<3x4xf32>
// expected-error @+1 {{operand 1 has 3 for dimension 'n' where another operand has 2}}
%0 = train.linear_grad_input %d, %w
    : (tensor<8x2xf32>, tensor<3x4xf32>) -> tensor<8x4xf32>

// -----

// linear_grad_input: one precision.
%d = "test.value"() : () -> tensor<8x2xbf16>
%w = "test.value"() : () -> tensor<2x4xbf16>
// expected-error @+1 {{mixes precisions: 'tensor<8x2xbf16>' and 'tensor<8x4xf32>'}}
%0 = train.linear_grad_input %d, %w
    : (tensor<8x2xbf16>, tensor<2x4xbf16>) -> tensor<8x4xf32>

// -----

// linear_grad_weight: weight gradients are f32 in every precision.
%d = "test.value"() : () -> tensor<8x2xbf16>
%x = "test.value"() : () -> tensor<8x4xbf16>
// expected-error @+1 {{weight gradient must be f32, got 'tensor<2x4xbf16>'}}
%0 = train.linear_grad_weight %d, %x
    : (tensor<8x2xbf16>, tensor<8x4xbf16>) -> tensor<2x4xbf16>

// -----

// linear_grad_weight: the result is shaped like the weight, not its transpose.
%d = "test.value"() : () -> tensor<8x2xf32>
%x = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{result 0 has 4 for dimension 'n' where another operand has 2}}
%0 = train.linear_grad_weight %d, %x
    : (tensor<8x2xf32>, tensor<8x4xf32>) -> tensor<4x2xf32>

// -----

// attention_grad: the rules of attention hold.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
%l = "test.value"() : () -> tensor<2x4x2xf32>
// expected-error @+1 {{log-sum-exp must be 'tensor<2x2x4xf32>', got 'tensor<2x4x2xf32>'}}
%0:3 = train.attention_grad %q, %q, %k, %k, %q, %l
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
       tensor<8x8xf32>, tensor<2x4x2xf32>)
    -> (tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>)

// -----

// attention_grad: dy is shaped like the query.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
%l = "test.value"() : () -> tensor<2x2x4xf32>
// expected-error @+1 {{dy must have the type of the query, 'tensor<8x8xf32>', got 'tensor<8x4xf32>'}}
%0:3 = train.attention_grad %k, %q, %k, %k, %q, %l
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x4xf32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
       tensor<8x8xf32>, tensor<2x2x4xf32>)
    -> (tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>)

// -----

// attention_grad: the saved output is shaped like the query.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
%l = "test.value"() : () -> tensor<2x2x4xf32>
// expected-error @+1 {{output must have the type of the query, 'tensor<8x8xf32>', got 'tensor<8x4xf32>'}}
%0:3 = train.attention_grad %q, %q, %k, %k, %k, %l
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
       tensor<8x4xf32>, tensor<2x2x4xf32>)
    -> (tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>)

// -----

// attention_grad: dq is shaped like the query.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
%l = "test.value"() : () -> tensor<2x2x4xf32>
// expected-error @+1 {{dq must have the type of the query, 'tensor<8x8xf32>', got 'tensor<8x4xf32>'}}
%0:3 = train.attention_grad %q, %q, %k, %k, %q, %l
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
       tensor<8x8xf32>, tensor<2x2x4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)

// -----

// attention_grad: dk is shaped like the key, not like the query.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
%l = "test.value"() : () -> tensor<2x2x4xf32>
// expected-error @+1 {{dk must have the type of the key, 'tensor<8x4xf32>', got 'tensor<8x8xf32>'}}
%0:3 = train.attention_grad %q, %q, %k, %k, %q, %l
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
       tensor<8x8xf32>, tensor<2x2x4xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>)

// -----

// attention_grad: dv is shaped like the value.
%q = "test.value"() : () -> tensor<8x8xf32>
%k = "test.value"() : () -> tensor<8x4xf32>
%l = "test.value"() : () -> tensor<2x2x4xf32>
// expected-error @+1 {{dv must have the type of the key, 'tensor<8x4xf32>', got 'tensor<8x8xf32>'}}
%0:3 = train.attention_grad %q, %q, %k, %k, %q, %l
    {head_dim = 4 : i64, sequence_length = 4 : i64}
    : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>,
       tensor<8x8xf32>, tensor<2x2x4xf32>)
    -> (tensor<8x8xf32>, tensor<8x4xf32>, tensor<8x8xf32>)

// -----

// swiglu_grad: one shape.
%d = "test.value"() : () -> tensor<8x6xf32>
%g = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{operand 1 has 4 for dimension 'f' where another operand has 6}}
%0:2 = train.swiglu_grad %d, %g, %d
    : (tensor<8x6xf32>, tensor<8x4xf32>, tensor<8x6xf32>)
    -> (tensor<8x6xf32>, tensor<8x6xf32>)

// -----

// swiglu_grad: one precision.
%d = "test.value"() : () -> tensor<8x6xbf16>
// expected-error @+1 {{mixes precisions: 'tensor<8x6xbf16>' and 'tensor<8x6xf32>'}}
%0:2 = train.swiglu_grad %d, %d, %d
    : (tensor<8x6xbf16>, tensor<8x6xbf16>, tensor<8x6xbf16>)
    -> (tensor<8x6xf32>, tensor<8x6xbf16>)
