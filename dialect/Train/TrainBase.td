//===- TrainBase.td - the train dialect and its enums ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_TRAIN_BASE_TD
#define RECKON_DIALECT_TRAIN_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialect/Train/TrainInterfaces.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::reckon::train";
  let summary = "One optimizer step of a model, as if on one device";
  let description = [{
    **Shapes are global; one device; every tensor that outlives a step is a
    named state.** The step has two regions: `train.microbatch`, which runs
    once per micro-batch and holds forward and backward of every layer, and
    `train.update`, which runs once and holds the optimizer. After
    `dist-partition` the same operations stand on local shapes.
  }];
}

def Train_StateRole : I32EnumAttr<"StateRole", "what a state is for", [
    I32EnumAttrCase<"Parameter", 0, "parameter">,
    I32EnumAttrCase<"Gradient", 1, "gradient">,
    I32EnumAttrCase<"MainWeight", 2, "main_weight">,
    I32EnumAttrCase<"Momentum", 3, "momentum">,
    I32EnumAttrCase<"Variance", 4, "variance">,
    I32EnumAttrCase<"Buffer", 5, "buffer">,
    I32EnumAttrCase<"Scalars", 6, "scalars">,
    I32EnumAttrCase<"Metrics", 7, "metrics">]> {
  let cppNamespace = "::reckon::train";
}

def Train_InputKind : I32EnumAttr<"InputKind", "which data a value holds", [
    I32EnumAttrCase<"Tokens", 0, "tokens">,
    I32EnumAttrCase<"Targets", 1, "targets">]> {
  let cppNamespace = "::reckon::train";
}

class Train_Op<string mnemonic, list<Trait> traits = []>
    : Op<Train_Dialect, mnemonic, traits>;

// A kernel or library call in practice. Results are named after the operation's
// NameLoc, so that dumps read %q and not %17.
class Train_ComputeOp<string mnemonic, list<Trait> traits = []>
    : Train_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
        DeclareOpInterfaceMethods<FlopsOpInterface>,
        DeclareOpInterfaceMethods<ShardingRuleOpInterface>]> {
  let hasVerifier = 1;
}

class Train_ForwardOp<string mnemonic, list<Trait> traits = []>
    : Train_ComputeOp<mnemonic, traits # [
        DeclareOpInterfaceMethods<VjpOpInterface>]>;

#endif // RECKON_DIALECT_TRAIN_BASE_TD
