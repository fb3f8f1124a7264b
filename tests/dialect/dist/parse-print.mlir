// Every operation and the sharding attribute survive a print and a parse, in
// the pretty and in the generic form. The inputs are the examples of the ODS
// descriptions.
// RUN: reckon-opt -allow-unregistered-dialect %s | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s
// RUN: reckon-opt -allow-unregistered-dialect -mlir-print-op-generic %s \
// RUN:   | reckon-opt -allow-unregistered-dialect | FileCheck %s

// CHECK:      dist.mesh @world axes ["tp", "cp", "ep", "dp", "pp"]
// CHECK-SAME:   sizes [2, 1, 1, 4, 2] {origins = {tp = "tiny.yaml:30:3"}}
dist.mesh @world axes ["tp", "cp", "ep", "dp", "pp"] sizes [2, 1, 1, 4, 2]
    {origins = {tp = "tiny.yaml:30:3"}}

%p = "test.value"() : () -> tensor<8x64xf32>
%part = "test.value"() : () -> tensor<128xf32>
%rows = "test.value"() : () -> tensor<4x64xf32>

// Both ends of a reshard have one type while shapes are global.
// CHECK:      dist.reshard %{{[0-9]+}}
// CHECK-SAME:   from <{{\[\[}}"dp"], []], unreduced = ["tp"]>
// CHECK-SAME:   to <{{\[\[}}"dp"], []]>
// CHECK-SAME:   : tensor<8x64xf32> -> tensor<8x64xf32>
%0 = dist.reshard %p from <[["dp"], []], unreduced = ["tp"]>
    to <[["dp"], []]> : tensor<8x64xf32> -> tensor<8x64xf32>

// A flat part has one dimension once shapes are local; the sharding still has
// one list per dimension of the tensor that it is a part of.
// CHECK-NEXT: dist.reshard
// CHECK-SAME:   from <{{\[\[}}], []], unreduced = ["dp"]>
// CHECK-SAME:   to <{{\[\[}}], []], flat = ["dp"], origin = "tiny.yaml:31:3">
// CHECK-SAME:   : tensor<8x64xf32> -> tensor<128xf32>
%1 = dist.reshard %p from <[[], []], unreduced = ["dp"]>
    to <[[], []], flat = ["dp"], origin = "tiny.yaml:31:3">
    : tensor<8x64xf32> -> tensor<128xf32>

// CHECK-NEXT: dist.all_reduce %{{[0-9]+}} axes ["tp"] group_size 2
// CHECK-SAME:   reduction "sum" : (tensor<8x64xf32>) -> tensor<8x64xf32>
%2 = dist.all_reduce %p axes ["tp"] group_size 2 reduction "sum"
    : (tensor<8x64xf32>) -> tensor<8x64xf32>

// A bucket: several tensors, one message.
// CHECK-NEXT: %{{[0-9]+}}:2 = dist.all_reduce %{{[0-9]+}}, %{{[0-9]+}}
// CHECK-SAME:   axes ["tp", "dp"] group_size 8 reduction "max" {origin = "tiny.yaml:30:3"}
// CHECK-SAME:   : (tensor<8x64xf32>, tensor<128xf32>)
// CHECK-SAME:   -> (tensor<8x64xf32>, tensor<128xf32>)
%3:2 = dist.all_reduce %p, %part axes ["tp", "dp"] group_size 8
    reduction "max" {origin = "tiny.yaml:30:3"}
    : (tensor<8x64xf32>, tensor<128xf32>)
    -> (tensor<8x64xf32>, tensor<128xf32>)

// Flat: 8 * 64 / 4 = 128 elements a rank.
// CHECK-NEXT: dist.reduce_scatter %{{[0-9]+}} axes ["dp"] group_size 4
// CHECK-SAME:   reduction "sum" : (tensor<8x64xf32>) -> tensor<128xf32>
%4 = dist.reduce_scatter %p axes ["dp"] group_size 4 reduction "sum"
    : (tensor<8x64xf32>) -> tensor<128xf32>

// CHECK-NEXT: dist.reduce_scatter %{{[0-9]+}} axes ["dp"] group_size 4
// CHECK-SAME:   reduction "sum" dim 1 : (tensor<8x64xf32>) -> tensor<8x16xf32>
%5 = dist.reduce_scatter %p axes ["dp"] group_size 4 reduction "sum" dim 1
    : (tensor<8x64xf32>) -> tensor<8x16xf32>

// CHECK-NEXT: dist.all_gather %{{[0-9]+}} axes ["dp"] group_size 4
// CHECK-SAME:   : (tensor<128xf32>) -> tensor<8x64xf32>
%6 = dist.all_gather %part axes ["dp"] group_size 4
    : (tensor<128xf32>) -> tensor<8x64xf32>

// CHECK-NEXT: dist.all_gather %{{[0-9]+}} axes ["dp"] group_size 4 dim 0
// CHECK-SAME:   : (tensor<4x64xf32>) -> tensor<16x64xf32>
%7 = dist.all_gather %rows axes ["dp"] group_size 4 dim 0
    : (tensor<4x64xf32>) -> tensor<16x64xf32>

// CHECK-NEXT: dist.slice %{{[0-9]+}} axes ["tp"] group_size 2 dim 0
// CHECK-SAME:   : (tensor<8x64xf32>) -> tensor<4x64xf32>
%8 = dist.slice %p axes ["tp"] group_size 2 dim 0
    : (tensor<8x64xf32>) -> tensor<4x64xf32>

// Flat: the same part that reduce_scatter gives, of a value that all hold.
// CHECK-NEXT: dist.slice %{{[0-9]+}} axes ["dp"] group_size 4
// CHECK-SAME:   : (tensor<8x64xf32>) -> tensor<128xf32>
%11 = dist.slice %p axes ["dp"] group_size 4
    : (tensor<8x64xf32>) -> tensor<128xf32>

// CHECK-NEXT: dist.all_to_all %{{[0-9]+}} axes ["tp"] group_size 2
// CHECK-SAME:   split 1 concat 0 : (tensor<4x64xf32>) -> tensor<8x32xf32>
%9 = dist.all_to_all %rows axes ["tp"] group_size 2 split 1 concat 0
    : (tensor<4x64xf32>) -> tensor<8x32xf32>

// The attribute on its own, with everything that it can say, and as a value
// carries it: one per result.
// CHECK:      test.attr
// CHECK-SAME:   #dist.sharding<{{\[\[}}"dp", "cp"], []], unreduced = ["tp"],
// CHECK-SAME:   reduction = "max", flat = ["ep"], origin = "a.yaml:1:2">
"test.attr"() {s = #dist.sharding<[["dp", "cp"], []], unreduced = ["tp"],
    reduction = "max", flat = ["ep"], origin = "a.yaml:1:2">} : () -> ()
// CHECK:      test.value
// CHECK-SAME:   {dist.sharding = [#dist.sharding<{{\[\[}}"dp"], []]>]}
%10 = "test.value"() {dist.sharding = [#dist.sharding<[["dp"], []]>]}
    : () -> tensor<8x64xf32>
