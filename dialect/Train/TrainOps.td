//===- TrainOps.td - program structure, states and the forward pass -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_TRAIN_OPS_TD
#define RECKON_DIALECT_TRAIN_OPS_TD

include "dialect/Train/TrainBase.td"

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Train_ProgramOp : Train_Op<"program", [
    IsolatedFromAbove, SymbolTable, NoTerminator, SingleBlock,
    Symbol]> {
  let summary = "a training job: its states and one optimizer step";
  let description = [{
    Holds the states, one `train.microbatch` and, once the optimizer is
    inserted, one `train.update`. `micro_batch_size` counts sequences per
    data-parallel rank; `global_batch_size` = micro_batch_size *
    num_micro_batches * data-parallel degree. `config` carries what the plan
    file records of the spec (optimizer, data, names). `pipeline_layout` is the
    number of decoder layers per pipeline stage.

    Example:
    ```mlir
    train.program @tiny sequence(64) micro_batch(2) micro_batches(4)
        global_batch(16) {
      train.state @w parameter : tensor<8x8xf32>
      train.microbatch { train.yield }
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      I64Attr:$sequence_length, I64Attr:$micro_batch_size,
      I64Attr:$num_micro_batches, I64Attr:$global_batch_size,
      DefaultValuedAttr<StrAttr, "\"fp32\"">:$precision,
      OptionalAttr<DenseI64ArrayAttr>:$pipeline_layout,
      OptionalAttr<DictionaryAttr>:$config);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `sequence` `(` $sequence_length `)`
    `micro_batch` `(` $micro_batch_size `)`
    `micro_batches` `(` $num_micro_batches `)`
    `global_batch` `(` $global_batch_size `)` attr-dict-with-keyword $body
  }];
  let extraClassDeclaration = [{
    /// Tokens of one micro-batch over all data-parallel ranks.
    int64_t getGlobalTokens() {
      return getGlobalBatchSize() / getNumMicroBatches() * getSequenceLength();
    }
    MicrobatchOp getMicrobatch();
    UpdateOp getUpdate();
  }];
  let hasRegionVerifier = 1;
}

def Train_StateOp : Train_Op<"state", [Symbol,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a named tensor that outlives a step";
  let description = [{
    The name of a parameter is its name in a Hugging Face checkpoint. States of
    other roles that belong to a parameter name it with `of` and are called
    `<parameter>#<role>`. `init` is a dictionary with `kind` (zeros, ones,
    normal, rope) and its numbers; `decay` marks parameters under weight decay.

    `dist-partition` makes the type local and records `global_shape`, for each
    dimension the mesh axes that split it (`box_axes`), the axes that split the
    flattened rest (`flat_axes`, ZeRO), and the axes on which all ranks hold
    equal values (`replica_axes`).

    Example:
    ```mlir
    train.state @"model.norm.weight" parameter {init = {kind = "ones"}}
        : tensor<64xf32>
    train.state @"model.norm.weight#gradient" gradient of @"model.norm.weight"
        : tensor<64xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Train_StateRole:$role,
      OptionalAttr<FlatSymbolRefAttr>:$parameter, TypeAttr:$type,
      OptionalAttr<DictionaryAttr>:$init, UnitAttr:$decay,
      OptionalAttr<I64Attr>:$tensor_parallel_dim,
      OptionalAttr<DenseI64ArrayAttr>:$global_shape,
      OptionalAttr<ArrayAttr>:$box_axes, OptionalAttr<StrArrayAttr>:$flat_axes,
      OptionalAttr<StrArrayAttr>:$replica_axes);
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "StateRole":$role,
                   "::mlir::RankedTensorType":$type), [{
      $_state.getOrAddProperties<Properties>().sym_name =
          $_builder.getStringAttr(name);
      $_state.getOrAddProperties<Properties>().role =
          StateRoleAttr::get($_builder.getContext(), role);
      $_state.getOrAddProperties<Properties>().type =
          ::mlir::TypeAttr::get(type);
    }]>,
  ];
  let assemblyFormat = [{
    $sym_name $role (`of` $parameter^)? (`decay` $decay^)? attr-dict `:` $type
  }];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
  let hasVerifier = 1;
}

def Train_MicrobatchOp : Train_Op<"microbatch", [
    SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments,
    HasParent<"ProgramOp">]> {
  let summary = "what runs once per micro-batch: forward and backward";
  let description = [{
    Example:
    ```mlir
    train.microbatch {
      %tokens = train.input tokens : tensor<128xi32>
      train.yield
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Train_UpdateOp : Train_Op<"update", [
    SingleBlockImplicitTerminator<"YieldOp">, NoRegionArguments,
    HasParent<"ProgramOp">]> {
  let summary = "what runs once per step: norm, clipping, optimizer";
  let description = [{
    Example:
    ```mlir
    train.update {
      %g = train.read @"w#gradient" : tensor<8x8xf32>
      train.sum_squares @metrics, %g : tensor<8x8xf32>
      train.yield
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Train_YieldOp : Train_Op<"yield", [Pure, Terminator,
    ParentOneOf<["MicrobatchOp", "UpdateOp", "LayerOp", "LayerGradOp"]>]> {
  let summary = "ends a region and hands out its values";
  let description = [{
    Only layers and their gradients have values to hand out.

    Example:
    ```mlir
    train.yield %y, %saved : tensor<8x8xf32>, tensor<8x8xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{
    build($_builder, $_state, ::mlir::ValueRange());
  }]>];
  let hasVerifier = 1;
}

def Train_InputOp : Train_Op<"input", [Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the token ids or the targets of this micro-batch";
  let description = [{
    One row per token of the global micro-batch; `targets` are the tokens
    shifted by one.

    Example:
    ```mlir
    %tokens = train.input tokens : tensor<128xi32>
    ```
  }];
  let arguments = (ins Train_InputKind:$kind);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$kind attr-dict `:` type($value)";
  let hasVerifier = 1;
}

class Train_LayerLike<string mnemonic> : Train_Op<mnemonic, [
    IsolatedFromAbove, SingleBlock, HasParent<"MicrobatchOp">]> {
  let arguments = (ins StrAttr:$name, Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<I64Attr>:$stage);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $name `(` $inputs `)` attr-dict-with-keyword $body
    `:` functional-type($inputs, $outputs)
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    YieldOp getYield();
  }];
}

def Train_LayerOp : Train_LayerLike<"layer"> {
  let summary = "forward of one layer, the unit of stage cuts and recompute";
  let description = [{
    The first output of the embedding and of a decoder layer is its activation;
    the outputs after it are the values that its backward reads and that are
    not inputs. The head has saved values only. Block arguments are the inputs;
    states are reached by name.

    Example:
    ```mlir
    %y, %n = train.layer "layers.0" (%x) {
    ^bb0(%arg: tensor<8x8xf32>):
      %w = train.read @w : tensor<8xf32>
      %n = train.rms_norm %arg, %w {eps = 1.0e-5}
          : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
      %y = train.add %arg, %n
          : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
      train.yield %y, %n : tensor<8x8xf32>, tensor<8x8xf32>
    } : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
    ```
  }];
}

def Train_LayerGradOp : Train_LayerLike<"layer_grad"> {
  let summary = "backward of one layer";
  let description = [{
    Inputs are the cotangent of the activation (not for the head), then what
    the forward saved. Weight gradients leave through `train.accumulate`; the
    output is the cotangent of the layer's input (not for the embedding).

    Example:
    ```mlir
    %dx = train.layer_grad "layers.0" (%dy, %n) {
    ^bb0(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>):
      train.yield %a : tensor<8x8xf32>
    } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    ```
  }];
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

def Train_ReadOp : Train_Op<"read", [
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead]>]> {
  let summary = "the value of a state";
  let description = [{
    Example:
    ```mlir
    %w = train.read @"model.norm.weight" : tensor<64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$state);
  let results = (outs AnyRankedTensor:$value);
  let assemblyFormat = "$state attr-dict `:` type($value)";
}

def Train_WriteOp : Train_Op<"write", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemWrite]>]> {
  let summary = "gives a state a new value";
  let description = [{
    Example:
    ```mlir
    train.write @"model.norm.weight", %new : tensor<64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$state, AnyRankedTensor:$value);
  let assemblyFormat = "$state `,` $value attr-dict `:` type($value)";
}

def Train_FillOp : Train_Op<"fill_zero", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemWrite]>]> {
  let summary = "sets a state to zero";
  let description = [{
    Example:
    ```mlir
    train.fill_zero @metrics
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$state);
  let assemblyFormat = "$state attr-dict";
}

//===----------------------------------------------------------------------===//
// Forward
//===----------------------------------------------------------------------===//

defvar Fn = "attr-dict `:` functional-type(operands, results)";

def Train_EmbeddingOp : Train_ForwardOp<"embedding", [Pure]> {
  let summary = "rows of the embedding table by token id";
  let description = [{
    `([t], [v,h]) -> [t,h]`, `v` reduced: under a split vocabulary a token that
    is not in this rank's rows gives a zero row, so the sum over `vocab_axes`
    is the embedding.

    Example:
    ```mlir
    %y = train.embedding %tokens, %w
        : (tensor<8xi32>, tensor<256x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$tokens, AnyRankedTensor:$weight,
                       OptionalAttr<StrArrayAttr>:$vocab_axes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$tokens `,` $weight ", Fn);
}

def Train_RmsNormOp : Train_ForwardOp<"rms_norm", [Pure]> {
  let summary = "x / sqrt(mean(x^2) + eps) * weight, by row";
  let description = [{
    `([t,h], [h]) -> [t,h]`; `h` is never split.

    Example:
    ```mlir
    %n = train.rms_norm %x, %w {eps = 1.0e-5 : f64}
        : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$weight,
                       F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$x `,` $weight ", Fn);
}

def Train_LinearOp : Train_ForwardOp<"linear", [Pure]> {
  let summary = "x times the transposed weight";
  let description = [{
    `([t,k], [n,k]) -> [t,n]`, `k` reduced. The weight is stored as in a
    checkpoint: one row per output feature.

    Example:
    ```mlir
    %q = train.linear %x, %w
        : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$weight);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$x `,` $weight ", Fn);
}

def Train_RopeOp : Train_ForwardOp<"rope", [Pure]> {
  let summary = "rotary position embedding, half-split layout";
  let description = [{
    `([t,d], table) -> [t,d]` with whole heads of `head_dim` columns. Row r has
    position r mod `sequence_length`; the table [sequence_length, head_dim]
    holds cosines, then sines. `inverse` rotates back: the backward of a
    rotation.

    Example:
    ```mlir
    %r = train.rope %q, %table {head_dim = 16 : i64, sequence_length = 64 : i64}
        : (tensor<128x64xf32>, tensor<64x16xf32>) -> tensor<128x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$table,
      I64Attr:$head_dim, I64Attr:$sequence_length, UnitAttr:$inverse);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$x `,` $table ", Fn);
}

def Train_AttentionOp : Train_ForwardOp<"attention", [Pure]> {
  let summary = "causal grouped-query attention that never holds s x s";
  let description = [{
    `([t,d], [t,e], [t,e]) -> [t,d], [b,a,s]`: whole heads of `head_dim`
    columns; query head i reads key-value head i / (a / kv heads). The second
    result is the log-sum-exp of each row of scores (scaled by
    1/sqrt(head_dim)), which the backward reads instead of the scores.

    Example:
    ```mlir
    %o, %lse = train.attention %q, %k, %v
        {head_dim = 16 : i64, sequence_length = 64 : i64}
        : (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
        -> (tensor<128x64xf32>, tensor<2x4x64xf32>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$q, AnyRankedTensor:$k,
      AnyRankedTensor:$v, I64Attr:$head_dim, I64Attr:$sequence_length);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$lse);
  let assemblyFormat = !strconcat("$q `,` $k `,` $v ", Fn);
}

def Train_SwigluOp : Train_ForwardOp<"swiglu", [Pure]> {
  let summary = "silu(gate) * up";
  let description = [{
    `([t,f], [t,f]) -> [t,f]`.

    Example:
    ```mlir
    %a = train.swiglu %gate, %up
        : (tensor<8x176xf32>, tensor<8x176xf32>) -> tensor<8x176xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$gate, AnyRankedTensor:$up);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$gate `,` $up ", Fn);
}

def Train_AddOp : Train_ForwardOp<"add", [Pure]> {
  let summary = "element-wise sum";
  let description = [{
    Linear: the sum of two unreduced values is unreduced.

    Example:
    ```mlir
    %y = train.add %a, %b
        : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$lhs `,` $rhs ", Fn);
}

def Train_CrossEntropyMaxOp : Train_ComputeOp<"cross_entropy_max", [Pure]> {
  let summary = "largest logit of each row";
  let description = [{
    `[t,v] -> [t]`, `v` reduced by maximum. The first of three parts of the
    loss, cut where a split vocabulary communicates.

    Example:
    ```mlir
    %max = train.cross_entropy_max %logits : (tensor<8x256xf32>) -> tensor<8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$logits,
                       OptionalAttr<StrArrayAttr>:$vocab_axes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$logits ", Fn);
}

def Train_CrossEntropySumOp : Train_ComputeOp<"cross_entropy_sum", [Pure]> {
  let summary = "sum of exponentials and target logit, less the maximum";
  let description = [{
    `([t,v], [t], [t]) -> [2,t]`, `v` reduced by sum. Row 0 is the sum of
    exp(logit - max), row 1 the target's logit - max.

    Example:
    ```mlir
    %sums = train.cross_entropy_sum %logits, %targets, %max
        : (tensor<8x256xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<2x8xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$targets,
      AnyRankedTensor:$max, OptionalAttr<StrArrayAttr>:$vocab_axes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$logits `,` $targets `,` $max ", Fn);
}

def Train_CrossEntropyLossOp : Train_ForwardOp<"cross_entropy_loss", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds the summed loss to the metrics; the root of the backward";
  let description = [{
    `([t,v], [t], [2,t], [t]) -> [t]`: adds sum(log(sum) - target) to
    `metrics`[0] and gives the log-sum-exp of each row. The kernel reads only
    the statistics; the logits and targets are operands because the gradient
    flows to the logits: (softmax - onehot) * `scale`, `scale` being
    1 / tokens of the global batch, the only scale factor of the whole step.

    Example:
    ```mlir
    %lse = train.cross_entropy_loss @metrics, %logits, %targets, %sums, %max
        {scale = 9.765625e-04 : f64}
        : (tensor<8x256xf32>, tensor<8xi32>, tensor<2x8xf32>, tensor<8xf32>)
        -> tensor<8xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$metrics, AnyRankedTensor:$logits,
      AnyRankedTensor:$targets, AnyRankedTensor:$sums, AnyRankedTensor:$max,
      F64Attr:$scale, OptionalAttr<StrArrayAttr>:$vocab_axes);
  let results = (outs AnyRankedTensor:$lse);
  let assemblyFormat =
      !strconcat("$metrics `,` $logits `,` $targets `,` $sums `,` $max ", Fn);
}

include "dialect/Train/TrainGradOps.td"
include "dialect/Train/TrainFp8Ops.td"

#endif // RECKON_DIALECT_TRAIN_OPS_TD
