//===- TrainInterfaces.td - what passes ask of an operation ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_TRAIN_INTERFACES_TD
#define RECKON_DIALECT_TRAIN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def VjpOpInterface : OpInterface<"VjpOpInterface"> {
  let cppNamespace = "::reckon::train";
  let description = [{
    Reverse-mode differentiation of one operation. `getSavedForBackward` lists
    the operands and results that the backward reads; `buildVjp` may read
    nothing else, which makes activation bytes derivable from the IR.
  }];
  let methods = [
    InterfaceMethod<"The operands and results that buildVjp reads.",
      "::llvm::SmallVector<::mlir::Value>", "getSavedForBackward">,
    InterfaceMethod<[{
        Builds the vector-Jacobian product at the builder's place. `lookup`
        maps a saved value of the forward to its value in the backward;
        `cotangents` has one entry per result (null: no gradient arrives).
        Returns one cotangent per operand, null where none exists.
      }],
      "::llvm::SmallVector<::mlir::Value>", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::function_ref<::mlir::Value(::mlir::Value)>":$lookup,
           "::mlir::ValueRange":$cotangents)>,
  ];
}

def FlopsOpInterface : OpInterface<"FlopsOpInterface"> {
  let cppNamespace = "::reckon::train";
  let description = [{
    Floating-point operations of one execution, from the operand shapes: two
    for every multiply-add of a matrix product; causal attention counts the
    lower triangle only.
  }];
  let methods = [
    InterfaceMethod<"", "uint64_t", "getFlops">,
  ];
}

def ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::reckon::train";
  let description = [{
    Which dimensions of operands and results are the same factor of the
    computation, as in `([t,k],[n,k]) -> ([t,n])` with `k` reduced. Factors of
    different size may share a letter when they are split together (tokens and
    sequences, columns and heads).
  }];
  let methods = [
    InterfaceMethod<"", "::reckon::train::ShardingRule", "getShardingRule">,
  ];
}

#endif // RECKON_DIALECT_TRAIN_INTERFACES_TD
