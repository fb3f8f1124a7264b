//===- PipeBase.td - dialect, enums and attributes of level 3 -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PIPE_PIPEBASE_TD
#define RECKON_DIALECT_PIPE_PIPEBASE_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def Pipe_Dialect : Dialect {
  let name = "pipe";
  let cppNamespace = "::reckon::pipe";
  let summary = "Level 3: one program per pipeline stage, in issue order";
  let description = [{
    Level 3 of the road. A `pipe.program` holds one `pipe.stage` per pipeline
    stage. A stage owns its states, a handful of straight-line fragments that
    do not grow with the number of micro-batches, and one action list that says
    in which order the stage loads, receives, runs and sends micro-batches and
    which slot holds what.

    **Invariant: every stage is a program of its own; values cross a stage
    border only through a send and its receive, values cross a fragment border
    only through slots, and the union of all action lists is free of
    deadlock.**

    docs/levels/pipe.md explains the level with the dump of a real model.
  }];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Slots
//===----------------------------------------------------------------------===//

def Pipe_SlotClass : I32EnumAttr<
    "SlotClass", "what a slot of a stage holds between two actions",
    [I32EnumAttrCase<"Tokens", 0, "tokens">,
     I32EnumAttrCase<"Input", 1, "input">,
     I32EnumAttrCase<"Stash", 2, "stash">,
     I32EnumAttrCase<"Output", 3, "output">,
     I32EnumAttrCase<"Targets", 4, "targets">,
     I32EnumAttrCase<"GradIn", 5, "grad_in">,
     I32EnumAttrCase<"GradOut", 6, "grad_out">]> {
  let cppNamespace = "::reckon::pipe";
  let genSpecializedAttr = 0;
}

def Pipe_SlotUseAttr : AttrDef<Pipe_Dialect, "SlotUse"> {
  let mnemonic = "use";
  let summary = "one slot that an action touches";
  let description = [{
    The slot `index` of class `slot_class`. `acquire` marks the first use of a
    new content, `release` the last one: between the two the slot belongs to
    one micro-batch. Inside an action's `uses [...]` list the attribute is
    written without its `#pipe.use<>` wrapper.

    Example:

    ```mlir
    #pipe.use<stash 2 acquire>
    ```
  }];
  let parameters = (ins EnumParameter<Pipe_SlotClass>:$slotClass,
                        "int64_t":$index, "bool":$acquire, "bool":$release);
  let hasCustomAssemblyFormat = 1;
}

def Pipe_SlotUses : TypedArrayAttrBase<Pipe_SlotUseAttr, "array of slot uses">;

//===----------------------------------------------------------------------===//
// Fragments and directions
//===----------------------------------------------------------------------===//

def Pipe_FragmentKind : I32EnumAttr<
    "FragmentKind", "the part of a step that a fragment computes",
    [I32EnumAttrCase<"Begin", 0, "begin">,
     I32EnumAttrCase<"Forward", 1, "forward">,
     I32EnumAttrCase<"Backward", 2, "backward">,
     I32EnumAttrCase<"Update", 3, "update">]> {
  let cppNamespace = "::reckon::pipe";
}

def Pipe_Direction : I32EnumAttr<
    "Direction", "the way a message travels through the pipeline",
    [I32EnumAttrCase<"Forward", 0, "forward">,
     I32EnumAttrCase<"Backward", 1, "backward">]> {
  let cppNamespace = "::reckon::pipe";
}

#endif // RECKON_DIALECT_PIPE_PIPEBASE_TD
