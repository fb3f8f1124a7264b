//===- DistOps.td - mesh, shardings, collectives --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_DIST_OPS_TD
#define RECKON_DIALECT_DIST_OPS_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Dist_Dialect : Dialect {
  let name = "dist";
  let cppNamespace = "::reckon::dist";
  let summary = "How values are spread over devices, and what moves them";
  let description = [{
    Two phases. Sharded: **shapes are global; every value has a sharding; no
    communication operation exists**, only `dist.reshard`. Partitioned:
    **shapes are local to a rank; every transfer of data is an explicit
    collective.** Axes have names; the ranks of a group are ordered with tp
    fastest, then cp, ep, dp, pp.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

def Dist_ShardingAttr : AttrDef<Dist_Dialect, "Sharding"> {
  let mnemonic = "sharding";
  let summary = "which axes split which dimension, and what is still to reduce";
  let description = [{
    `dims` has one list of axis names per dimension. `unreduced` axes hold
    partial results that combine by `reduction` (sum or max). `flat` axes split
    the flattened tensor, padded with zeros to equal parts (ZeRO). `origin` is
    the place in the YAML that caused the sharding.

    Values carry it in the discardable attribute `dist.sharding`: an array with
    one sharding per result, or the sharding itself on a state.

    Constraints:
    - an axis stands at most once in a sharding;
    - there is one list of axes per dimension;
    - a dimension's size is a multiple of the product of its axes.

    Example:
    ```mlir
    #dist.sharding<[["dp"], []], unreduced = ["tp"], origin = "tiny.yaml:30:3">
    ```
  }];
  let parameters = (ins
      "::mlir::ArrayAttr":$dims,
      OptionalParameter<"::mlir::ArrayAttr">:$unreduced,
      OptionalParameter<"::mlir::StringAttr">:$reduction,
      OptionalParameter<"::mlir::ArrayAttr">:$flat,
      OptionalParameter<"::mlir::StringAttr">:$origin);
  let assemblyFormat = [{
    `<` $dims (`,` struct($unreduced, $reduction, $flat, $origin)^)? `>`
  }];
  let genVerifyDecl = 1;
}

class Dist_Op<string mnemonic, list<Trait> traits = []>
    : Op<Dist_Dialect, mnemonic, traits>;

def Dist_MeshOp : Dist_Op<"mesh", [Symbol]> {
  let summary = "the axes of the job and their sizes";
  let description = [{
    Axes are listed fastest first: neighbours on the first axis are neighbours
    in the world. `origins` names, per axis, the YAML key that set its size.

    Example:
    ```mlir
    dist.mesh @world axes ["tp", "cp", "ep", "dp", "pp"] sizes [2, 1, 1, 4, 2]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrArrayAttr:$axes,
      DenseI64ArrayAttr:$sizes, OptionalAttr<DictionaryAttr>:$origins);
  let assemblyFormat = "$sym_name `axes` $axes `sizes` $sizes attr-dict";
  let extraClassDeclaration = [{
    /// Ranks along an axis; 1 for an axis that the mesh does not have.
    int64_t getAxisSize(::llvm::StringRef axis);
    /// The YAML place of an axis, empty if it is not known.
    ::llvm::StringRef getOrigin(::llvm::StringRef axis);
  }];
  let hasVerifier = 1;
}

def Dist_ReshardOp : Dist_Op<"reshard", [Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the same value under another sharding";
  let description = [{
    The only operation that changes a sharding. On global shapes operand and
    result have one type; `dist-partition` makes both local (a flat part has one
    dimension), and `dist-reshard-to-collectives` replaces it.

    Example:
    ```mlir
    %r = dist.reshard %p from <[["dp"], []], unreduced = ["tp"]>
        to <[["dp"], []]> : tensor<8x64xf32> -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, Dist_ShardingAttr:$from,
                       Dist_ShardingAttr:$to);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `from` $from `to` $to attr-dict
    `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

class Dist_CollectiveOp<string mnemonic> : Dist_Op<mnemonic, [Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let hasVerifier = 1;
}

def Dist_AllReduceOp : Dist_CollectiveOp<"all_reduce"> {
  let summary = "every rank of a group gets the reduction of all";
  let description = [{
    ```
    rank 0: a0      a0+a1
    rank 1: a1  ->  a0+a1
    ```
    Takes several tensors: one message of a bucket. `group_size` ranks differ
    in `axes` only. `origin` says which YAML key caused it.

    Example:
    ```mlir
    %r = dist.all_reduce %p axes ["tp"] group_size 2 reduction "sum"
        : (tensor<8x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrArrayAttr:$axes,
      I64Attr:$group_size, StrAttr:$reduction, OptionalAttr<StrAttr>:$origin);
  let assemblyFormat = [{
    $inputs `axes` $axes `group_size` $group_size `reduction` $reduction
    attr-dict `:` functional-type($inputs, $outputs)
  }];
}

def Dist_ReduceScatterOp : Dist_CollectiveOp<"reduce_scatter"> {
  let summary = "every rank of a group gets its part of the reduction";
  let description = [{
    ```
    rank 0: a0 b0      a0+a1
    rank 1: a1 b1  ->  b0+b1
    ```
    Along `dim`, or along the flattened tensor padded to equal parts (no
    `dim`): the result then is one-dimensional.

    Example:
    ```mlir
    %r = dist.reduce_scatter %g axes ["dp"] group_size 4 reduction "sum"
        : (tensor<8x64xf32>) -> tensor<128xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrArrayAttr:$axes,
      I64Attr:$group_size, StrAttr:$reduction, OptionalAttr<I64Attr>:$dim,
      OptionalAttr<StrAttr>:$origin);
  let assemblyFormat = [{
    $inputs `axes` $axes `group_size` $group_size `reduction` $reduction
    (`dim` $dim^)? attr-dict `:` functional-type($inputs, $outputs)
  }];
}

def Dist_AllGatherOp : Dist_CollectiveOp<"all_gather"> {
  let summary = "every rank of a group gets the parts of all";
  let description = [{
    ```
    rank 0: a      a b
    rank 1: b  ->  a b
    ```
    Along `dim`, or from flat parts (no `dim`), dropping the padding.

    Example:
    ```mlir
    %w = dist.all_gather %p axes ["dp"] group_size 4
        : (tensor<128xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrArrayAttr:$axes,
      I64Attr:$group_size, OptionalAttr<I64Attr>:$dim,
      OptionalAttr<StrAttr>:$origin);
  let assemblyFormat = [{
    $inputs `axes` $axes `group_size` $group_size (`dim` $dim^)?
    attr-dict `:` functional-type($inputs, $outputs)
  }];
}

def Dist_SliceOp : Dist_CollectiveOp<"slice"> {
  let summary = "a rank's part of a value that all ranks hold; moves nothing";
  let description = [{
    ```
    rank 0: a b      a
    rank 1: a b  ->  b
    ```
    Along `dim`, or a flat part of the tensor padded to equal ones (no `dim`).

    Example:
    ```mlir
    %s = dist.slice %x axes ["tp"] group_size 2 dim 0
        : (tensor<8x64xf32>) -> tensor<4x64xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrArrayAttr:$axes,
      I64Attr:$group_size, OptionalAttr<I64Attr>:$dim,
      OptionalAttr<StrAttr>:$origin);
  let assemblyFormat = [{
    $inputs `axes` $axes `group_size` $group_size (`dim` $dim^)?
    attr-dict `:` functional-type($inputs, $outputs)
  }];
}

def Dist_AllToAllOp : Dist_CollectiveOp<"all_to_all"> {
  let summary = "moves a split from one dimension to another";
  let description = [{
    ```
    rank 0: a0 a1      a0 b0
    rank 1: b0 b1  ->  a1 b1
    ```

    Example:
    ```mlir
    %s = dist.all_to_all %x axes ["tp"] group_size 2 split 1 concat 0
        : (tensor<4x64xf32>) -> tensor<8x32xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrArrayAttr:$axes,
      I64Attr:$group_size, I64Attr:$split_dim, I64Attr:$concat_dim,
      OptionalAttr<StrAttr>:$origin);
  let assemblyFormat = [{
    $inputs `axes` $axes `group_size` $group_size `split` $split_dim
    `concat` $concat_dim attr-dict `:` functional-type($inputs, $outputs)
  }];
}

#endif // RECKON_DIALECT_DIST_OPS_TD
