// Rules of #dist.sharding, of the attribute dist.sharding, of dist.mesh and of
// dist.reshard, one rule per chunk.
// RUN: reckon-opt -allow-unregistered-dialect -split-input-file \
// RUN:   -verify-diagnostics %s

// A dimension has a list of axes.
// expected-error @+1 {{needs a list of axes per dimension, got "dp"}}
"test.attr"() {s = #dist.sharding<["dp", []]>} : () -> ()

// -----

// Axes are strings.
// expected-error @+1 {{axes must be strings, got 3 : i64}}
"test.attr"() {s = #dist.sharding<[["dp", 3], []]>} : () -> ()

// -----

// An axis splits one dimension only.
// expected-error @+1 {{axis "tp" stands twice}}
"test.attr"() {s = #dist.sharding<[["tp"], ["tp"]]>} : () -> ()

// -----

// What an axis splits it cannot also leave unreduced.
// expected-error @+1 {{axis "tp" stands twice}}
"test.attr"() {s = #dist.sharding<[["tp"], []], unreduced = ["tp"]>} : () -> ()

// -----

// Unreduced axes are strings.
// expected-error @+1 {{axes must be strings, got unit}}
"test.attr"() {s = #dist.sharding<[[]], unreduced = [unit]>} : () -> ()

// -----

// Flat axes count as well.
// expected-error @+1 {{axis "dp" stands twice}}
"test.attr"() {s = #dist.sharding<[["dp"]], flat = ["dp"]>} : () -> ()

// -----

// Two reductions are known.
// expected-error @+1 {{reduction must be sum or max, got "mean"}}
"test.attr"() {s = #dist.sharding<[[]], unreduced = ["tp"],
                                  reduction = "mean">} : () -> ()

// -----

// The dialect has one attribute for other operations.
// expected-error @+1 {{has an unknown attribute "dist.shardings"}}
%0 = "test.value"() {dist.shardings = []} : () -> tensor<8xf32>

// -----

// Results have their shardings in an array.
// expected-error @+1 {{needs one sharding per result, in an array; only a state has one}}
%0 = "test.value"() {dist.sharding = #dist.sharding<[[]]>} : () -> tensor<8xf32>

// -----

// The attribute holds shardings and nothing else.
// expected-error @+1 {{"dist.sharding" must hold shardings, got ["dp"]}}
%0 = "test.value"() {dist.sharding = ["dp"]} : () -> tensor<8xf32>

// -----

// One sharding per result.
// expected-error @+1 {{has 1 shardings for 2 results}}
%0:2 = "test.value"() {dist.sharding = [#dist.sharding<[[]]>]}
    : () -> (tensor<8xf32>, tensor<8xf32>)

// -----

// One list of axes per dimension of a result.
// expected-error @+1 {{sharding #dist.sharding<[["dp"]]> does not fit 'tensor<8x4xf32>'}}
%0 = "test.value"() {dist.sharding = [#dist.sharding<[["dp"]]>]}
    : () -> tensor<8x4xf32>

// -----

// One list of axes per dimension of a state.
train.program @state_rank sequence(1) micro_batch(1) micro_batches(1)
    global_batch(1) {
  // expected-error @+1 {{sharding #dist.sharding<[["tp"], []]> does not fit 'tensor<8xf32>'}}
  train.state @w parameter {dist.sharding = #dist.sharding<[["tp"], []]>}
      : tensor<8xf32>
  train.microbatch { }
}

// -----

// As many sizes as axes.
// expected-error @+1 {{has 2 axes and 1 sizes}}
dist.mesh @world axes ["tp", "dp"] sizes [2]

// -----

// Axes have different names.
// expected-error @+1 {{names axis "tp" twice}}
dist.mesh @world axes ["tp", "tp"] sizes [2, 2]

// -----

// An axis has ranks.
// expected-error @+1 {{axis "dp" must have at least 1 rank, got 0}}
dist.mesh @world axes ["tp", "dp"] sizes [2, 0]

// -----

// Both shardings of a reshard speak of one value.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{goes from 2 dimensions to 1}}
%1 = dist.reshard %0 from <[["dp"], []]> to <[["dp"]]>
    : tensor<8x4xf32> -> tensor<8x4xf32>

// -----

// A reshard is no cast.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{changes the element type: 'tensor<8x4xf32>' to 'tensor<8x4xbf16>'}}
%1 = dist.reshard %0 from <[["dp"], []]> to <[[], []]>
    : tensor<8x4xf32> -> tensor<8x4xbf16>

// -----

// Parts have sizes.
%0 = "test.value"() : () -> tensor<?x4xf32>
// expected-error @+1 {{needs static shapes, got 'tensor<?x4xf32>'}}
%1 = dist.reshard %0 from <[["dp"], []]> to <[[], []]>
    : tensor<?x4xf32> -> tensor<8x4xf32>

// -----

// The first sharding is the operand's.
%0 = "test.value"() : () -> tensor<8xf32>
// expected-error @+1 {{sharding #dist.sharding<[["dp"], []]> does not fit 'tensor<8xf32>'}}
%1 = dist.reshard %0 from <[["dp"], []]> to <[[], []]>
    : tensor<8xf32> -> tensor<8x4xf32>

// -----

// The second sharding is the result's; only flat parts lose dimensions.
%0 = "test.value"() : () -> tensor<8x4xf32>
// expected-error @+1 {{sharding #dist.sharding<[[], []], flat = ["dp"]> does not fit 'tensor<2x2x2xf32>'}}
%1 = dist.reshard %0 from <[[], []]> to <[[], []], flat = ["dp"]>
    : tensor<8x4xf32> -> tensor<2x2x2xf32>
