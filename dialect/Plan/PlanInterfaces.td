//===- PlanInterfaces.td - what instructions and actions share ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PLAN_PLANINTERFACES_TD
#define RECKON_DIALECT_PLAN_PLANINTERFACES_TD

include "mlir/IR/OpBase.td"

def Plan_InstructionOpInterface : OpInterface<"InstructionOpInterface"> {
  let description = [{
    Work inside a fragment: reads its inputs, writes its outputs (some outputs
    are read too), in the order of its stream.
  }];
  let cppNamespace = "::reckon::planir";
  let methods = [
    InterfaceMethod<"buffers that it reads", "::mlir::OperandRange",
                    "getIns">,
    InterfaceMethod<"buffers that it writes", "::mlir::OperandRange",
                    "getOuts">,
    InterfaceMethod<"its stream, null before plan-assign-streams",
                    "::mlir::FlatSymbolRefAttr", "getStreamAttr">,
    InterfaceMethod<"sets its stream", "void", "setStreamAttr",
                    (ins "::mlir::FlatSymbolRefAttr":$stream)>
  ];
}

def Plan_ActionOpInterface : OpInterface<"ActionOpInterface"> {
  let description = [{
    An entry of an action list: waits for events, works, records events, all on
    one stream, with slots bound.
  }];
  let cppNamespace = "::reckon::planir";
  let methods = [
    InterfaceMethod<"its name, such as 2F0", "::llvm::StringRef", "getLabel">,
    InterfaceMethod<"its stream, null before plan-assign-streams",
                    "::mlir::FlatSymbolRefAttr", "getStreamAttr">,
    InterfaceMethod<"sets its stream", "void", "setStreamAttr",
                    (ins "::mlir::FlatSymbolRefAttr":$stream)>,
    InterfaceMethod<"BindingAttr of every slot", "::mlir::ArrayAttr",
                    "getBindings">,
    InterfaceMethod<"events that it waits for", "::llvm::ArrayRef<int64_t>",
                    "getWaits">,
    InterfaceMethod<"sets the events that it waits for", "void", "setWaits",
                    (ins "::llvm::ArrayRef<int64_t>":$events)>,
    InterfaceMethod<"events that it records", "::llvm::ArrayRef<int64_t>",
                    "getRecords">,
    InterfaceMethod<"sets the events that it records", "void", "setRecords",
                    (ins "::llvm::ArrayRef<int64_t>":$events)>
  ];
}

#endif // RECKON_DIALECT_PLAN_PLANINTERFACES_TD
