// What the verifiers of the fp8 operations refuse, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// All is well: 8 x 24 values are 16 x 32 codes.
%x = "test.value"() : () -> tensor<8x24xbf16>
%w = "test.value"() : () -> tensor<16x32xf8E4M3FN>
%m = train.amax %x : (tensor<8x24xbf16>) -> tensor<1xf32>
%s, %c, %t = train.cast_fp8 %x, %m straight transposed
    : (tensor<8x24xbf16>, tensor<1xf32>)
    -> (tensor<1xf32>, tensor<16x32xf8E5M2>, tensor<32x16xf8E5M2>)
%y = train.linear_fp8 %c, %s, %w, %s {k = 24 : i64}
    : (tensor<16x32xf8E5M2>, tensor<1xf32>, tensor<16x32xf8E4M3FN>,
       tensor<1xf32>) -> tensor<8x4xbf16>

// -----

%x = "test.value"() : () -> tensor<8x24xf32>
// expected-error @+1 {{operand must be a static matrix of bf16, got 'tensor<8x24xf32>'}}
%m = train.amax %x : (tensor<8x24xf32>) -> tensor<1xf32>

// -----

%x = "test.value"() : () -> tensor<8x24xbf16>
// expected-error @+1 {{result must be tensor<1xf32>, got 'tensor<8xf32>'}}
%m = train.amax %x : (tensor<8x24xbf16>) -> tensor<8xf32>

// -----

%x = "test.value"() : () -> tensor<8x24xbf16>
%m = "test.value"() : () -> tensor<1xf32>
// expected-error @+1 {{has 0 results of codes}}
%s = train.cast_fp8 %x, %m : (tensor<8x24xbf16>, tensor<1xf32>) -> tensor<1xf32>

// -----

%x = "test.value"() : () -> tensor<8x24xbf16>
%m = "test.value"() : () -> tensor<1xf32>
// expected-error @+1 {{the codes must be 16 x 32 codes of f8E4M3FN or f8E5M2, got 'tensor<8x24xf8E4M3FN>'}}
%s, %c = train.cast_fp8 %x, %m straight
    : (tensor<8x24xbf16>, tensor<1xf32>)
    -> (tensor<1xf32>, tensor<8x24xf8E4M3FN>)

// -----

%x = "test.value"() : () -> tensor<8x24xbf16>
%m = "test.value"() : () -> tensor<1xf32>
// expected-error @+1 {{the transposed codes must be 32 x 16 codes}}
%s, %c = train.cast_fp8 %x, %m transposed
    : (tensor<8x24xbf16>, tensor<1xf32>)
    -> (tensor<1xf32>, tensor<16x32xf8E4M3FN>)

// -----

%x = "test.value"() : () -> tensor<8x24xbf16>
%m = "test.value"() : () -> tensor<1xf32>
// expected-error @+1 {{codes and transposed codes must have one format}}
%s, %c, %t = train.cast_fp8 %x, %m straight transposed
    : (tensor<8x24xbf16>, tensor<1xf32>)
    -> (tensor<1xf32>, tensor<16x32xf8E4M3FN>, tensor<32x16xf8E5M2>)

// -----

%a = "test.value"() : () -> tensor<16x32xf8E4M3FN>
%s = "test.value"() : () -> tensor<1xf32>
// expected-error @+1 {{a must be 16 x 48 codes}}
%y = train.linear_fp8 %a, %s, %a, %s {k = 33 : i64}
    : (tensor<16x32xf8E4M3FN>, tensor<1xf32>, tensor<16x32xf8E4M3FN>,
       tensor<1xf32>) -> tensor<8x4xbf16>

// -----

%a = "test.value"() : () -> tensor<16x32xf8E4M3FN>
%s = "test.value"() : () -> tensor<1xf32>
// expected-error @+1 {{result must be a static matrix of bf16 or f32}}
%y = train.linear_fp8 %a, %s, %a, %s {k = 32 : i64}
    : (tensor<16x32xf8E4M3FN>, tensor<1xf32>, tensor<16x32xf8E4M3FN>,
       tensor<1xf32>) -> tensor<16x16xf8E4M3FN>
