//===- PlanOps.td - the plan dialect's operations -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PLAN_PLANOPS_TD
#define RECKON_DIALECT_PLAN_PLANOPS_TD

include "dialect/Plan/PlanBase.td"
include "dialect/Plan/PlanInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Plan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Plan_Dialect, mnemonic, traits>;

//===----------------------------------------------------------------------===//
// The program and its tables
//===----------------------------------------------------------------------===//

def Plan_ProgramOp : Plan_Op<"program", [
    Symbol, SymbolTable, IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "everything that the ranks of one pipeline stage do";
  let description = [{
    One per stage; becomes one plan file. `mesh` gives the degrees of the whole
    job. `arena` is the bytes that a rank allocates: known once
    `plan-allocate-buffers` has placed every buffer. `config` carries what the
    file needs from the spec (optimizer, data, batch) untouched.

    Example:
    ```mlir
    plan.program @stage0 stage 0 mesh [tp = 2, cp = 1, ep = 1, dp = 2, pp = 1]
        arena 4096 {
      plan.stream @compute
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$stage,
                       DenseI64ArrayAttr:$mesh,
                       OptionalAttr<I64Attr>:$arena_bytes,
                       OptionalAttr<DictionaryAttr>:$config);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $sym_name `stage` $stage `mesh` custom<Mesh>($mesh)
    (`arena` $arena_bytes^)? attr-dict-with-keyword $bodyRegion
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

class Plan_TableOp<string mnemonic, list<Trait> traits = []>
    : Plan_Op<mnemonic, traits # [Symbol, HasParent<"ProgramOp">]>;

def Plan_GroupOp : Plan_TableOp<"group"> {
  let summary = "ranks that communicate collectively";
  let description = [{
    The ranks that share this rank's coordinates on all axes but `axes` and
    whose coordinates pass every filter, ordered by rank.

    Example: `plan.group @tp_ranks axes [tp]`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$axes,
                       OptionalAttr<TypedArrayAttrBase<Plan_AxisFilterAttr,
                                    "filters">>:$filters);
  let assemblyFormat = [{
    $sym_name `axes` custom<Axes>($axes) (`where` $filters^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_ChannelOp : Plan_TableOp<"channel"> {
  let summary = "first-in first-out messages between two stages";
  let description = [{
    One per directed pair of stages and direction; `id` is the same number on
    both sides.

    Example: `plan.channel @forward_0_1 0 forward from 0 to 1`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$id,
                       Plan_DirectionAttr:$direction, I64Attr:$source,
                       I64Attr:$target);
  let assemblyFormat = [{
    $sym_name $id `` $direction `from` $source `to` $target attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_StreamOp : Plan_TableOp<"stream"> {
  let summary = "an in-order queue of work on the device";
  let description = [{
    Example: `plan.stream @compute`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let assemblyFormat = "$sym_name attr-dict";
}

def Plan_StateOp : Plan_TableOp<"state"> {
  let summary = "this rank's part of a tensor that outlives the step";
  let description = [{
    `type` is what the rank holds: the box's shape, or, with `flat`, the rank's
    block of the flattened box, which is padded with zeros to
    ranks * flat_elements. `bytes` may exceed the type's when collectives work
    in place on a padded buffer. Replicas are equal on the ranks of
    `replica_axes`; the owner has coordinate 0 on each of them.

    Example:
    ```mlir
    plan.state @"model.norm.weight" parameter : !plan.buffer<64xf32>
        global [64] box [0 : 64] bytes 256 offset 512 replicas [tp, dp]
        init #plan.init<ones>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_RoleAttr:$role,
                       TypeAttrOf<Plan_Buffer>:$type,
                       DenseI64ArrayAttr:$global_shape,
                       TypedArrayAttrBase<Plan_ExtentAttr, "extents">:$box,
                       I64Attr:$bytes, OptionalAttr<I64Attr>:$offset,
                       OptionalAttr<DenseI64ArrayAttr>:$flat_axes,
                       OptionalAttr<I64Attr>:$flat_elements,
                       OptionalAttr<DenseI64ArrayAttr>:$replica_axes,
                       OptionalAttr<Plan_InitAttr>:$init,
                       UnitAttr:$decay, OptionalAttr<StrAttr>:$tie);
  let assemblyFormat = [{
    $sym_name `` $role `:` $type `global` custom<Shape>($global_shape)
    `box` custom<Box>($box) `bytes` $bytes (`offset` $offset^)?
    (`flat` custom<Axes>($flat_axes)^ $flat_elements)?
    (`replicas` custom<Axes>($replica_axes)^)? (`init` $init^)?
    (`decay` $decay^)? (`tie` $tie^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_SlotClassOp : Plan_TableOp<"slot_class"> {
  let summary = "equal buffers that rotate among micro-batches";
  let description = [{
    `count` slots of `bytes` each, a multiple of the alignment; slot i starts
    at offset + i * bytes. The count is the simultaneous peak over the action
    list. `category` is the key of the memory report.

    Example:
    ```mlir
    plan.slot_class @stash bytes 65536 count 2 offset 4096
        category "activations"
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$bytes, I64Attr:$count,
                       OptionalAttr<I64Attr>:$offset, StrAttr:$category);
  let assemblyFormat = [{
    $sym_name `bytes` $bytes `count` $count (`offset` $offset^)?
    `category` $category attr-dict
  }];
  let hasVerifier = 1;
}

def Plan_LaneOp : Plan_TableOp<"lane"> {
  let summary = "one workspace of fragments that never overlap in time";
  let description = [{
    `bytes` is the largest workspace of its fragments; `logits` of them are what
    the memory report calls logits.

    Example: `plan.lane @workspace bytes 8192 offset 135168 logits 4096`
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<I64Attr>:$bytes,
                       OptionalAttr<I64Attr>:$offset,
                       DefaultValuedAttr<I64Attr, "0">:$logits_bytes);
  let assemblyFormat = [{
    $sym_name (`bytes` $bytes^)? (`offset` $offset^)? (`logits` $logits_bytes^)?
    attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

def Plan_FragmentOp : Plan_TableOp<"fragment", [
    NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "a straight line of instructions, run on slots";
  let description = [{
    Work begins and ends on the home stream. `slots` are the formal slots, each
    of a class; an action binds an index of the class to each.

    Example:
    ```mlir
    plan.fragment @forward home @compute lane @workspace
        slots (tokens : @tokens, stash : @stash) events 2 {
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<FlatSymbolRefAttr>:$home,
                       FlatSymbolRefAttr:$lane, StrArrayAttr:$slot_names,
                       FlatSymbolRefArrayAttr:$slot_classes,
                       DefaultValuedAttr<I64Attr, "0">:$events);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $sym_name (`home` $home^)? `lane` $lane
    `slots` custom<Formals>($slot_names, $slot_classes) (`events` $events^)?
    attr-dict-with-keyword $bodyRegion
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Class of the formal slot `name`; null when there is no such slot.
    ::mlir::FlatSymbolRefAttr getSlotClass(::llvm::StringRef name);
  }];
}

class Plan_RefOp<string mnemonic, list<Trait> traits = []>
    : Plan_Op<mnemonic, traits # [Pure, HasParent<"FragmentOp">]> {
  let results = (outs Plan_Buffer:$buffer);
}

def Plan_StateRefOp : Plan_RefOp<"state_ref", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "bytes of a state";
  let description = [{
    The offset counts bytes from the state's own start.

    Example: `%0 = plan.state_ref @"w#momentum" + 2816 * dp : <704xf32>`
  }];
  let arguments = (ins FlatSymbolRefAttr:$state, Plan_ExprAttr:$offset);
  let assemblyFormat = [{
    $state `+` custom<Expr>($offset) attr-dict `:` type($buffer)
  }];
}

def Plan_SlotRefOp : Plan_RefOp<"slot_ref", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "bytes of a bound slot";
  let description = [{
    Example: `%0 = plan.slot_ref "stash" + 1024 : <128x64xf32>`
  }];
  let arguments = (ins StrAttr:$slot, I64Attr:$offset);
  let assemblyFormat = "$slot `+` $offset attr-dict `:` type($buffer)";
}

def Plan_LaneRefOp : Plan_RefOp<"lane_ref", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "bytes of the fragment's lane";
  let description = [{
    Example: `%0 = plan.lane_ref + 512 : <128x64xf32>`
  }];
  let arguments = (ins I64Attr:$offset);
  let assemblyFormat = "`+` $offset attr-dict `:` type($buffer)";
}

def Plan_TempOp : Plan_RefOp<"temp"> {
  let summary = "bytes of the lane that have no place yet";
  let description = [{
    Exists between `plan-materialize` and `plan-allocate-buffers`, which turns
    it into a `plan.lane_ref`. `logits` marks the buffer of the logits.

    Example: `%0 = plan.temp : <128x64xf32>`
  }];
  let arguments = (ins UnitAttr:$logits);
  let assemblyFormat = "(`logits` $logits^)? attr-dict `:` type($buffer)";
}

def Plan_LaunchOp : Plan_Op<"launch", [
    AttrSizedOperandSegments, HasParent<"FragmentOp">,
    Plan_InstructionOpInterface]> {
  let summary = "run a kernel";
  let description = [{
    Operands, arguments and numbers as the kernel table (`KernelTable.h`) says.
    `flops` are those of this rank's call.

    Example:
    ```mlir
    plan.launch "linear" on @compute ins(%x, %w : !plan.buffer<128x64xf32>,
        !plan.buffer<176x64xf32>) outs(%y : !plan.buffer<128x176xf32>)
        args [176, 64] {flops = 2883584 : i64, layer = "layers.0"}
    ```
  }];
  let arguments = (ins StrAttr:$kernel, OptionalAttr<FlatSymbolRefAttr>:$stream,
                       Variadic<Plan_Buffer>:$ins, Variadic<Plan_Buffer>:$outs,
                       TypedArrayAttrBase<Plan_ExprAttr, "exprs">:$args,
                       DenseF64ArrayAttr:$floats,
                       DefaultValuedAttr<I64Attr, "0">:$flops,
                       OptionalAttr<StrAttr>:$layer);
  let assemblyFormat = [{
    $kernel (`on` $stream^)? (`ins` `(` $ins^ `:` type($ins) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)?
    `args` custom<Exprs>($args) `floats` $floats attr-dict
  }];
  let hasVerifier = 1;
}

class Plan_CollectiveOp<string mnemonic>
    : Plan_Op<mnemonic, [AttrSizedOperandSegments, HasParent<"FragmentOp">,
                         Plan_InstructionOpInterface,
                         DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let hasVerifier = 1;
}

def Plan_AllReduceOp : Plan_CollectiveOp<"all_reduce"> {
  let summary = "combine buffers over a group, in place";
  let description = [{
    Outputs are the inputs. Several buffers travel as one message.

    Example:
    ```mlir
    plan.all_reduce sum over @tp_ranks on @tp
        ins(%0 : !plan.buffer<128x64xf32>) outs(%0 : !plan.buffer<128x64xf32>)
    ```
  }];
  let arguments = (ins Plan_ReductionAttr:$reduction, FlatSymbolRefAttr:$group,
                       OptionalAttr<FlatSymbolRefAttr>:$stream,
                       Variadic<Plan_Buffer>:$ins, Variadic<Plan_Buffer>:$outs,
                       OptionalAttr<StrAttr>:$layer);
  let assemblyFormat = [{
    `` $reduction `over` $group (`on` $stream^)?
    `ins` `(` $ins `:` type($ins) `)` `outs` `(` $outs `:` type($outs) `)`
    attr-dict
  }];
}

def Plan_AllGatherOp : Plan_CollectiveOp<"all_gather"> {
  let summary = "concatenate the blocks of a group's ranks";
  let description = [{
    Output i holds group-size blocks of input i's size, in group order. The
    input may be this rank's block of the output.

    Example:
    ```mlir
    plan.all_gather over @dp_ranks on @dp
        ins(%0 : !plan.buffer<704xf32>) outs(%1 : !plan.buffer<1408xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$group,
                       OptionalAttr<FlatSymbolRefAttr>:$stream,
                       Variadic<Plan_Buffer>:$ins, Variadic<Plan_Buffer>:$outs,
                       OptionalAttr<StrAttr>:$layer);
  let assemblyFormat = [{
    `over` $group (`on` $stream^)?
    `ins` `(` $ins `:` type($ins) `)` `outs` `(` $outs `:` type($outs) `)`
    attr-dict
  }];
}

def Plan_ReduceScatterOp : Plan_CollectiveOp<"reduce_scatter"> {
  let summary = "combine over a group, each rank keeps its block";
  let description = [{
    Input i holds group-size blocks of output i's size, in group order. The
    output may be this rank's block of the input.

    Example:
    ```mlir
    plan.reduce_scatter sum over @dp_ranks on @dp
        ins(%1 : !plan.buffer<1408xf32>) outs(%0 : !plan.buffer<704xf32>)
    ```
  }];
  let arguments = (ins Plan_ReductionAttr:$reduction, FlatSymbolRefAttr:$group,
                       OptionalAttr<FlatSymbolRefAttr>:$stream,
                       Variadic<Plan_Buffer>:$ins, Variadic<Plan_Buffer>:$outs,
                       OptionalAttr<StrAttr>:$layer);
  let assemblyFormat = [{
    `` $reduction `over` $group (`on` $stream^)?
    `ins` `(` $ins `:` type($ins) `)` `outs` `(` $outs `:` type($outs) `)`
    attr-dict
  }];
}

def Plan_CopyOp : Plan_Op<"copy", [
    AttrSizedOperandSegments, HasParent<"FragmentOp">,
    Plan_InstructionOpInterface]> {
  let summary = "copy bytes";
  let description = [{
    With `source_offset`, an expression over the rank's coordinates, as many
    bytes as the target has from there on: a rank's part of a larger buffer.

    Example:
    ```mlir
    plan.copy on @compute
        ins(%0 : !plan.buffer<8xf32>) outs(%1 : !plan.buffer<8xf32>)
    ```
  }];
  let arguments = (ins OptionalAttr<FlatSymbolRefAttr>:$stream,
                       Variadic<Plan_Buffer>:$ins, Variadic<Plan_Buffer>:$outs,
                       OptionalAttr<Plan_ExprAttr>:$source_offset,
                       OptionalAttr<StrAttr>:$layer);
  let assemblyFormat = [{
    (`on` $stream^)?
    `ins` `(` $ins `:` type($ins) `)` `outs` `(` $outs `:` type($outs) `)`
    attr-dict
  }];
  let hasVerifier = 1;
}

class Plan_EventOp<string mnemonic>
    : Plan_Op<mnemonic, [HasParent<"FragmentOp">]> {
  let arguments = (ins I64Attr:$event, FlatSymbolRefAttr:$stream);
  let assemblyFormat = "$event `on` $stream attr-dict";
}

def Plan_RecordOp : Plan_EventOp<"record"> {
  let summary = "an event: all earlier work of the stream is done";
  let description = [{
    Example: `plan.record 0 on @compute`
  }];
}

def Plan_WaitOp : Plan_EventOp<"wait"> {
  let summary = "later work of the stream waits for an event";
  let description = [{
    Example: `plan.wait 0 on @tp`
  }];
}

//===----------------------------------------------------------------------===//
// Action lists
//===----------------------------------------------------------------------===//

def Plan_ActionsOp : Plan_TableOp<"actions", [
    NoTerminator, SingleBlock, IsolatedFromAbove]> {
  let summary = "a named list of actions, in issue order";
  let description = [{
    Only streams and events order execution. Events outlive a step: a wait
    refers to the newest record issued before it and passes when there is none.

    Example:
    ```mlir
    plan.actions @step events 1 {
      plan.run "begin" @begin on @compute slots ()
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<I64Attr, "0">:$events);
  let regions = (region SizedRegion<1>:$bodyRegion);
  let assemblyFormat = [{
    $sym_name (`events` $events^)? attr-dict-with-keyword $bodyRegion
  }];
  let hasRegionVerifier = 1;
}

class Plan_ActionOp<string mnemonic>
    : Plan_Op<mnemonic, [HasParent<"ActionsOp">, Plan_ActionOpInterface,
                         DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  dag actionArguments =
      (ins OptionalAttr<FlatSymbolRefAttr>:$stream,
           OptionalAttr<I64Attr>:$microbatch,
           TypedArrayAttrBase<Plan_BindingAttr, "bindings">:$bindings,
           DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$waits,
           DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$records);
  string actionFormat = [{
    (`on` $stream^)? (`microbatch` $microbatch^)?
    `slots` custom<Bindings>($bindings)
    (`waits` $waits^)? (`records` $records^)? attr-dict
  }];
}

def Plan_RunOp : Plan_ActionOp<"run"> {
  let summary = "run a fragment on slots";
  let description = [{
    One binding for each of the fragment's slots, in their order.

    Example:
    ```mlir
    plan.run "0F1" @forward on @compute microbatch 1
        slots (@tokens[1], @stash[1] acquire) waits [3] records [4]
    ```
  }];
  let arguments = !con((ins StrAttr:$label, FlatSymbolRefAttr:$fragment),
                       actionArguments);
  let assemblyFormat = "$label $fragment " # actionFormat;
}

def Plan_SendOp : Plan_ActionOp<"send"> {
  let summary = "send a slot to another stage";
  let description = [{
    `buffers` are what moves of each binding, from the slot's start.

    Example:
    ```mlir
    plan.send "0SEND_F1" @forward_0_1 [!plan.buffer<128x64xf32>]
        on @send_forward microbatch 1 slots (@output[1] release) waits [4]
    ```
  }];
  let arguments = !con((ins StrAttr:$label, FlatSymbolRefAttr:$channel,
                            TypeArrayAttr:$buffers), actionArguments);
  let assemblyFormat = "$label $channel $buffers " # actionFormat;
}

def Plan_RecvOp : Plan_ActionOp<"recv"> {
  let summary = "receive a slot from another stage";
  let description = [{
    Example:
    ```mlir
    plan.recv "0RECV_B1" @backward_1_0 [!plan.buffer<128x64xf32>]
        on @recv_backward microbatch 1 slots (@grad_in[0] acquire) records [5]
    ```
  }];
  let arguments = !con((ins StrAttr:$label, FlatSymbolRefAttr:$channel,
                            TypeArrayAttr:$buffers), actionArguments);
  let assemblyFormat = "$label $channel $buffers " # actionFormat;
}

def Plan_LoadOp : Plan_ActionOp<"load"> {
  let summary = "fill slots with a micro-batch of data";
  let description = [{
    Example:
    ```mlir
    plan.load "0LOAD1" [!plan.buffer<128xi32>] on @load microbatch 1
        slots (@tokens[1] acquire) records [6]
    ```
  }];
  let arguments = !con((ins StrAttr:$label, TypeArrayAttr:$buffers),
                       actionArguments);
  let assemblyFormat = "$label $buffers " # actionFormat;
}

#endif // RECKON_DIALECT_PLAN_PLANOPS_TD
