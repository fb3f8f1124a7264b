//===- PipeOps.td - programs, stages, fragments and actions ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PIPE_PIPEOPS_TD
#define RECKON_DIALECT_PIPE_PIPEOPS_TD

include "dialect/Pipe/PipeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Pipe_Op<string mnemonic, list<Trait> traits = []>
    : Op<Pipe_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// Structure: program, stage, fragment
//===----------------------------------------------------------------------===//

def Pipe_ProgramOp : Pipe_Op<"program",
    [Symbol, IsolatedFromAbove, NoRegionArguments, NoTerminator,
     SingleBlock]> {
  let summary = "the training job as one program per pipeline stage";
  let description = [{
    What all stages share stands in its attributes; those that the dialect
    does not know, such as the mesh, are carried along unchanged from
    `train.program`. `config` is what the plan file records of the spec.

    Constraints:
    - stages are numbered 0, 1, 2, ... in order
    - `num_micro_batches` is at least 1
    - what stage s sends has the type of what stage s + 1 receives, both ways
    - either every stage has an action list or none has; with action lists
      `schedule` names their kind

    Example:

    ```mlir
    pipe.program @tiny schedule("1f1b") sequence(64) micro_batch(2)
        micro_batches(4) global_batch(16) {
      pipe.stage 0 layers ["embedding", "layers.0"] { ... }
      pipe.stage 1 layers ["layers.1", "head"] { ... }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<StrAttr>:$schedule,
                       I64Attr:$sequence_length, I64Attr:$micro_batch_size,
                       I64Attr:$num_micro_batches, I64Attr:$global_batch_size,
                       DefaultValuedAttr<StrAttr, "\"fp32\"">:$precision,
                       OptionalAttr<DictionaryAttr>:$config);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $sym_name (`schedule` `(` $schedule^ `)`)?
    `sequence` `(` $sequence_length `)` `micro_batch` `(` $micro_batch_size `)`
    `micro_batches` `(` $num_micro_batches `)`
    `global_batch` `(` $global_batch_size `)`
    attr-dict-with-keyword $bodyRegion
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The stages in order.
    auto getStages() { return getBody()->getOps<StageOp>(); }
  }];
}

def Pipe_StageOp : Pipe_Op<"stage",
    [SymbolTable, IsolatedFromAbove, NoRegionArguments, NoTerminator,
     SingleBlock, HasParent<"ProgramOp">]> {
  let summary = "what the ranks of one pipeline stage hold and run";
  let description = [{
    Contains the `train.state` ops that the stage owns, its fragments, and,
    once `pipe-schedule` has run, its action list. All ranks of the stage read
    the same program; what differs between them is a function of their
    coordinates.

    Constraints:
    - one fragment each of kind `begin`, `forward` and `update`
    - one `backward` fragment with `first_micro_batch`, which overwrites the
      gradients, and exactly when there is more than one micro-batch another
      without it, which adds to them
    - `forward` and `backward` take tokens in the first stage and input in the
      others; `backward` takes targets in the last stage and grad_in in the
      others
    - `forward` leaves output in all stages but the last, `backward` leaves
      grad_out in all but the first
    - what `forward` saves is what every `backward` takes, in this order
    - at most one action list

    Example:

    ```mlir
    pipe.stage 1 layers ["layers.1", "head"] {
      train.state @"lm_head.weight" ...
      pipe.fragment @begin kind begin roles [] () { ... }
      pipe.fragment @forward kind forward roles ["input"] (...) { ... }
      ...
    }
    ```
  }];
  let arguments = (ins I64Attr:$index, StrArrayAttr:$layers);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $index `layers` $layers attr-dict-with-keyword $bodyRegion
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    auto getFragments() { return getBody()->getOps<FragmentOp>(); }
    /// The fragment of this kind; of the two backward ones that for the first
    /// micro-batch or the other. Null when there is none.
    FragmentOp findFragment(FragmentKind kind, bool firstMicroBatch = false);
    /// The action list, or null before scheduling.
    ActionsOp findActions();
    ProgramOp getProgram();
    bool isFirst() { return getIndex() == 0; }
    bool isLast();
  }];
}

def Pipe_FragmentOp : Pipe_Op<"fragment",
    [Symbol, IsolatedFromAbove, SingleBlock, HasParent<"StageOp">,
     DeclareOpInterfaceMethods<OpAsmOpInterface,
                               ["getAsmBlockArgumentNames"]>]> {
  let summary = "straight-line work on one micro-batch, or around a step";
  let description = [{
    The body holds compute, state and communication ops on local shapes; no
    layer op is left. Arguments and results live in slots, which an action
    binds; `roles` names the slot class of each argument, those of the results
    stand on `pipe.return`. The roles are the names of the slot classes, with
    `saved` for a value inside a slot of class `stash`; `"saved" * 24` is short
    for 24 of them.

    The fragment with `first_micro_batch` overwrites gradient accumulators,
    its sibling adds to them; otherwise the two are equal.

    Constraints:
    - one role per argument, and the role is allowed for the kind:
      `forward` takes tokens or input; `backward` takes tokens, input, saved,
      targets and grad_in; `begin` and `update` take nothing
    - no role but `saved` occurs twice
    - `first_micro_batch` only on kind `backward`

    Example:

    ```mlir
    pipe.fragment @forward kind forward roles ["input"]
        (%input: tensor<128x64xf32>) {
      %w = train.read @"model.norm.weight" : tensor<64xf32>
      ...
      pipe.return %y, %n1 roles ["output", "saved"]
          : tensor<128x64xf32>, tensor<128x64xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       Pipe_FragmentKind:$kind,
                       StrArrayAttr:$roles,
                       UnitAttr:$first_micro_batch);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $sym_name `kind` $kind (`first_micro_batch` $first_micro_batch^)?
    `roles` custom<Roles>($roles) attr-dict-with-keyword
    custom<FragmentBody>($bodyRegion)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    StageOp getStage();
    ReturnOp getReturn();
    /// The role of an argument or result by its number.
    llvm::StringRef getArgumentRole(unsigned number);
    llvm::StringRef getResultRole(unsigned number);
    /// The argument (or returned value) of a role other than "saved", or null.
    mlir::Value findArgument(llvm::StringRef role);
    mlir::Value findResult(llvm::StringRef role);
    /// The slot classes that its arguments and results live in, ascending and
    /// each once: the order in which an action binds them.
    llvm::SmallVector<SlotClass> getSlotClasses();
  }];
}

def Pipe_ReturnOp : Pipe_Op<"return",
    [Terminator, HasParent<"FragmentOp">, Pure]> {
  let summary = "the values that a fragment leaves in slots";
  let description = [{
    Constraints:
    - one role per operand, and the role is allowed for the fragment's kind:
      `forward` leaves output and saved, `backward` leaves grad_out, `begin`
      and `update` leave nothing
    - no role but `saved` occurs twice
    - an operand is made by an op of the fragment, and is returned once

    Example:

    ```mlir
    pipe.return %dx roles ["grad_out"] : tensor<128x64xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values, StrArrayAttr:$roles);
  let assemblyFormat = [{
    ($values^)? `roles` custom<Roles>($roles) attr-dict (`:` type($values)^)?
  }];
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, mlir::ValueRange(),
          $_builder.getStrArrayAttr({}));
  }]>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Actions: what a stage does, in issue order
//===----------------------------------------------------------------------===//

def Pipe_ActionsOp : Pipe_Op<"actions",
    [Symbol, NoRegionArguments, NoTerminator, SingleBlock,
     HasParent<"StageOp">]> {
  let summary = "the ordered actions of a stage in one optimizer step";
  let description = [{
    The list is the issue order; what runs when is a matter of streams and
    events, which the plan level adds.

    Constraints:
    - it begins with the `begin` fragment and ends with `update`
    - every micro-batch runs forward once and backward once, forward first
    - the micro-batch that runs backward first uses the fragment with
      `first_micro_batch`, the others the one without
    - a slot's content is acquired, used, and released, in this order, and all
      slots are free at the end

    Example:

    ```mlir
    pipe.actions @step {
      pipe.run @begin "begin" uses []
      pipe.load "0LOAD0" micro_batch 0 uses [tokens 0 acquire]
      pipe.run @forward "0F0" micro_batch 0
          uses [tokens 0, stash 0 acquire, output 0 acquire]
      pipe.send "0SEND_F0" forward to 1 channel 0 micro_batch 0
          uses [output 0 release]
      ...
      pipe.run @update "update" uses []
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $bodyRegion";
}

class Pipe_ActionOp<string mnemonic, list<Trait> traits = []>
    : Pipe_Op<mnemonic, traits # [HasParent<"ActionsOp">]> {
  let hasVerifier = 1;
}

def Pipe_LoadOp : Pipe_ActionOp<"load"> {
  let summary = "brings a micro-batch's tokens or targets from the data";
  let description = [{
    Constraints:
    - uses only slots of class tokens or targets, and acquires each

    Example:

    ```mlir
    pipe.load "0LOAD3" micro_batch 3 uses [tokens 0 acquire]
    ```
  }];
  let arguments = (ins StrAttr:$label, I64Attr:$micro_batch,
                       Pipe_SlotUses:$uses);
  let assemblyFormat = [{
    $label `micro_batch` $micro_batch
    `uses` custom<SlotUses>($uses) attr-dict
  }];
}

def Pipe_RecvOp : Pipe_ActionOp<"recv"> {
  let summary = "receives one micro-batch's tensor from a neighbour stage";
  let description = [{
    A forward receive fills a slot of class input from the stage below, a
    backward one a slot of class grad_in from the stage above. Messages of a
    channel arrive in the order in which they were sent.

    Constraints:
    - the peer is the neighbour in the direction of the message
    - the channel is 2s forward and 2s + 1 backward, s the lower stage
    - exactly one slot, of the direction's class, acquired here

    Example:

    ```mlir
    pipe.recv "1RECV_F3" forward from 0 channel 0 micro_batch 3
        uses [input 0 acquire]
    ```
  }];
  let arguments = (ins StrAttr:$label, Pipe_Direction:$direction,
                       I64Attr:$peer, I64Attr:$channel, I64Attr:$micro_batch,
                       Pipe_SlotUses:$uses);
  let assemblyFormat = [{
    $label $direction `from` $peer `channel` $channel
    `micro_batch` $micro_batch
    `uses` custom<SlotUses>($uses) attr-dict
  }];
}

def Pipe_SendOp : Pipe_ActionOp<"send"> {
  let summary = "sends one micro-batch's tensor to a neighbour stage";
  let description = [{
    A forward send empties a slot of class output to the stage above, a
    backward one a slot of class grad_out to the stage below. It completes
    only when the peer has posted the receive.

    Constraints:
    - the peer is the neighbour in the direction of the message
    - the channel is 2s forward and 2s + 1 backward, s the lower stage
    - exactly one slot, of the direction's class, released here

    Example:

    ```mlir
    pipe.send "0SEND_F3" forward to 1 channel 0 micro_batch 3
        uses [output 1 release]
    ```
  }];
  let arguments = (ins StrAttr:$label, Pipe_Direction:$direction,
                       I64Attr:$peer, I64Attr:$channel, I64Attr:$micro_batch,
                       Pipe_SlotUses:$uses);
  let assemblyFormat = [{
    $label $direction `to` $peer `channel` $channel
    `micro_batch` $micro_batch
    `uses` custom<SlotUses>($uses) attr-dict
  }];
}

def Pipe_RunOp : Pipe_ActionOp<"run",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a fragment with slots bound";
  let description = [{
    Constraints:
    - the fragment exists in the stage
    - the slot classes used are those of the fragment's arguments and results,
      in class order
    - a micro-batch is named exactly for forward and backward fragments

    Example:

    ```mlir
    pipe.run @backward "0B3" micro_batch 3
        uses [tokens 0 release, stash 1 release, grad_in 0 release]
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$fragment, StrAttr:$label,
                       OptionalAttr<I64Attr>:$micro_batch,
                       Pipe_SlotUses:$uses);
  let assemblyFormat = [{
    $fragment $label (`micro_batch` $micro_batch^)?
    `uses` custom<SlotUses>($uses) attr-dict
  }];
  let hasVerifier = 0;
}

#endif // RECKON_DIALECT_PIPE_PIPEOPS_TD
