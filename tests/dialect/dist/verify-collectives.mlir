// Rules of the collectives, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// A collective moves something.
// expected-error @+1 {{has 0 operands and 0 results; both must be equal and at least 1}}
"dist.all_reduce"() {axes = ["tp"], group_size = 2 : i64, reduction = "sum"}
    : () -> ()

// -----

// One result per operand.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{has 2 operands and 1 results; both must be equal and at least 1}}
%1 = dist.all_reduce %0, %0 axes ["tp"] group_size 2 reduction "sum"
    : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>

// -----

// A group has ranks.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{group_size must be positive, got 0}}
%1 = dist.slice %0 axes ["tp"] group_size 0 dim 0
    : (tensor<8xf32>) -> tensor<8xf32>

// -----

// An axis counts once.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{names axis "tp" twice}}
%1 = dist.all_gather %0 axes ["tp", "tp"] group_size 4 dim 0
    : (tensor<8xf32>) -> tensor<32xf32>

// -----

// What moves has a size.
%0 = "test.value"() : () -> tensor<?xf32>
// expected-error @+1 {{needs static shapes, got 'tensor<?xf32>'}}
%1 = dist.reduce_scatter %0 axes ["dp"] group_size 2 reduction "sum"
    : (tensor<?xf32>) -> tensor<4xf32>

// -----

// A collective is no cast.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{changes the element type: 'tensor<8xf32>' to 'tensor<4xbf16>'}}
%1 = dist.slice %0 axes ["tp"] group_size 2 dim 0
    : (tensor<8xf32>) -> tensor<4xbf16>

// -----

// all_reduce: two reductions are known.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{reduction must be sum or max, got "product"}}
%1 = dist.all_reduce %0 axes ["tp"] group_size 2 reduction "product"
    : (tensor<8xf32>) -> tensor<8xf32>

// -----

// all_reduce: the type stays.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{changes the type: 'tensor<8xf32>' to 'tensor<4xf32>'}}
%1 = dist.all_reduce %0 axes ["tp"] group_size 2 reduction "sum"
    : (tensor<8xf32>) -> tensor<4xf32>

// -----

// reduce_scatter: two reductions are known.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{reduction must be sum or max, got "min"}}
%1 = dist.reduce_scatter %0 axes ["tp"] group_size 2 reduction "min" dim 0
    : (tensor<8xf32>) -> tensor<4xf32>

// -----

// reduce_scatter: the dimension exists.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{dim 2 is outside 'tensor<8x4xf32>'}}
%1 = dist.reduce_scatter %0 axes ["tp"] group_size 2 reduction "sum" dim 2
    : (tensor<8x4xf32>) -> tensor<4x4xf32>

// -----

// reduce_scatter: the parts are equal.
%0 = "test.value"() : () -> tensor<7x4xf32>
// expected-error @+1 {{dimension 0 of 'tensor<7x4xf32>' is not a multiple of group_size 2}}
%1 = dist.reduce_scatter %0 axes ["tp"] group_size 2 reduction "sum" dim 0
    : (tensor<7x4xf32>) -> tensor<3x4xf32>

// -----

// reduce_scatter: the result is a part. 8 / 2 = 4 rows.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{expects parts of 'tensor<4x4xf32>', got 'tensor<8x2xf32>'}}
%1 = dist.reduce_scatter %0 axes ["tp"] group_size 2 reduction "sum" dim 0
    : (tensor<8x4xf32>) -> tensor<8x2xf32>

// -----

// reduce_scatter, flat: 15 elements over 4 ranks are 4 each, the last padded.
%0 = "test.value"() : () -> tensor<3x5xf32>
// expected-error @+1 {{expects flat parts of 4 elements (15 over 4), got 'tensor<3xf32>'}}
%1 = dist.reduce_scatter %0 axes ["dp"] group_size 4 reduction "sum"
    : (tensor<3x5xf32>) -> tensor<3xf32>

// -----

// reduce_scatter, flat: parts have one dimension.
%0 = "test.value"() : () -> tensor<3x5xf32>
// expected-error @+1 {{expects flat parts of 4 elements (15 over 4), got 'tensor<4x1xf32>'}}
%1 = dist.reduce_scatter %0 axes ["dp"] group_size 4 reduction "sum"
    : (tensor<3x5xf32>) -> tensor<4x1xf32>

// -----

// all_gather: the operand is a part of the result. 8 / 2 = 4 rows.
%0 = "test.value"() : () -> tensor<3x4xf32>
// expected-error @+1 {{expects parts of 'tensor<4x4xf32>', got 'tensor<3x4xf32>'}}
%1 = dist.all_gather %0 axes ["tp"] group_size 2 dim 0
    : (tensor<3x4xf32>) -> tensor<8x4xf32>

// -----

// all_gather, flat: 15 elements over 4 ranks are 4 each.
%0 = "test.value"() : () -> tensor<5xf32>
// expected-error @+1 {{expects flat parts of 4 elements (15 over 4), got 'tensor<5xf32>'}}
%1 = dist.all_gather %0 axes ["dp"] group_size 4
    : (tensor<5xf32>) -> tensor<3x5xf32>

// -----

// slice: the dimension exists; a negative one does not count from the end.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{dim -1 is outside 'tensor<8xf32>'}}
%1 = dist.slice %0 axes ["tp"] group_size 2 dim -1
    : (tensor<8xf32>) -> tensor<4xf32>

// -----

// slice: the result is a part.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{expects parts of 'tensor<4xf32>', got 'tensor<8xf32>'}}
%1 = dist.slice %0 axes ["tp"] group_size 2 dim 0
    : (tensor<8xf32>) -> tensor<8xf32>

// -----

// slice, flat: 15 elements over 4 ranks are 4 each.
%0 = "test.value"() : () -> tensor<3x5xf32>
// expected-error @+1 {{expects flat parts of 4 elements (15 over 4), got 'tensor<15xf32>'}}
%1 = dist.slice %0 axes ["dp"] group_size 4
    : (tensor<3x5xf32>) -> tensor<15xf32>

// -----

// all_to_all: the split moves to another dimension.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{split and concat must be different dimensions}}
%1 = dist.all_to_all %0 axes ["tp"] group_size 2 split 1 concat 1
    : (tensor<8x4xf32>) -> tensor<8x4xf32>

// -----

// all_to_all: both dimensions exist.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{dimensions 2 and 0 must lie in 'tensor<8x4xf32>'}}
%1 = dist.all_to_all %0 axes ["tp"] group_size 2 split 2 concat 0
    : (tensor<8x4xf32>) -> tensor<16x4xf32>

// -----

// all_to_all: the new parts are equal.
%0 = "test.value"() : () -> tensor<8x5xf32>
// expected-error @+1 {{dimension 1 of 'tensor<8x5xf32>' is not a multiple of group_size 2}}
%1 = dist.all_to_all %0 axes ["tp"] group_size 2 split 1 concat 0
    : (tensor<8x5xf32>) -> tensor<16x2xf32>

// -----

// all_to_all: one dimension shrinks as the other grows: 8 * 2 by 4 / 2.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{expects 'tensor<16x2xf32>', got 'tensor<8x4xf32>'}}
%1 = dist.all_to_all %0 axes ["tp"] group_size 2 split 1 concat 0
    : (tensor<8x4xf32>) -> tensor<8x4xf32>
