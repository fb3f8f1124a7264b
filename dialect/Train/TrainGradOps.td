//===- TrainGradOps.td - backward and optimizer ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Input and weight gradients are separate operations, so that splitting the
// backward for zero-bubble schedules is only a matter of placement.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_TRAIN_GRAD_OPS_TD
#define RECKON_DIALECT_TRAIN_GRAD_OPS_TD

include "dialect/Train/TrainBase.td"

defvar GradFn = "attr-dict `:` functional-type(operands, results)";

def Train_EmbeddingGradOp : Train_ComputeOp<"embedding_grad", [Pure]> {
  let summary = "weight gradient of an embedding";
  let description = [{
    `([t,h], [t]) -> [v,h]`, `t` reduced: row i is the sum of dy over the
    tokens with id i.

    Example:
    ```mlir
    %dw = train.embedding_grad %dy, %tokens
        : (tensor<8x64xf32>, tensor<8xi32>) -> tensor<256x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$tokens,
                       OptionalAttr<StrArrayAttr>:$vocab_axes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$dy `,` $tokens ", GradFn);
}

def Train_RmsNormGradInputOp : Train_ComputeOp<"rms_norm_grad_input", [Pure]> {
  let summary = "input gradient of rms_norm";
  let description = [{
    `([t,h], [t,h], [h]) -> [t,h]`; the row's norm is computed again from x.

    Example:
    ```mlir
    %dx = train.rms_norm_grad_input %dy, %x, %w {eps = 1.0e-5 : f64}
        : (tensor<8x64xf32>, tensor<8x64xf32>, tensor<64xf32>)
        -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$x,
                       AnyRankedTensor:$weight, F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$dy `,` $x `,` $weight ", GradFn);
}

def Train_RmsNormGradWeightOp
    : Train_ComputeOp<"rms_norm_grad_weight", [Pure]> {
  let summary = "weight gradient of rms_norm";
  let description = [{
    `([t,h], [t,h]) -> [h]`, `t` reduced.

    Example:
    ```mlir
    %dw = train.rms_norm_grad_weight %dy, %x {eps = 1.0e-5 : f64}
        : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$x, F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$dy `,` $x ", GradFn);
}

def Train_LinearGradInputOp : Train_ComputeOp<"linear_grad_input", [Pure]> {
  let summary = "input gradient of linear";
  let description = [{
    `([t,n], [n,k]) -> [t,k]`, `n` reduced.

    Example:
    ```mlir
    %dx = train.linear_grad_input %dy, %w
        : (tensor<8x32xf32>, tensor<32x64xf32>) -> tensor<8x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$weight);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$dy `,` $weight ", GradFn);
}

def Train_LinearGradWeightOp : Train_ComputeOp<"linear_grad_weight", [Pure]> {
  let summary = "weight gradient of linear";
  let description = [{
    `([t,n], [t,k]) -> [n,k]` in fp32, `t` reduced.

    Example:
    ```mlir
    %dw = train.linear_grad_weight %dy, %x
        : (tensor<8x32xf32>, tensor<8x64xf32>) -> tensor<32x64xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$dy `,` $x ", GradFn);
}

def Train_AttentionGradOp : Train_ComputeOp<"attention_grad", [Pure]> {
  let summary = "gradients of attention by blocks, from the log-sum-exp";
  let description = [{
    `([t,d], [t,d], [t,e], [t,e], [t,d], [b,a,s]) -> [t,d], [t,e], [t,e]`.
    Its kernel needs scratch of the size of `lse` for the row sums of dy * o.

    Example:
    ```mlir
    %dq, %dk, %dv = train.attention_grad %do, %q, %k, %v, %o, %lse
        {head_dim = 16 : i64, sequence_length = 64 : i64}
        : (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x32xf32>,
           tensor<128x32xf32>, tensor<128x64xf32>, tensor<2x4x64xf32>)
        -> (tensor<128x64xf32>, tensor<128x32xf32>, tensor<128x32xf32>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$q,
      AnyRankedTensor:$k, AnyRankedTensor:$v, AnyRankedTensor:$o,
      AnyRankedTensor:$lse, I64Attr:$head_dim, I64Attr:$sequence_length);
  let results = (outs AnyRankedTensor:$dq, AnyRankedTensor:$dk,
                      AnyRankedTensor:$dv);
  let assemblyFormat =
      !strconcat("$dy `,` $q `,` $k `,` $v `,` $o `,` $lse ", GradFn);
}

def Train_SwigluGradOp : Train_ComputeOp<"swiglu_grad", [Pure]> {
  let summary = "gradients of swiglu";
  let description = [{
    `([t,f], [t,f], [t,f]) -> [t,f], [t,f]`.

    Example:
    ```mlir
    %dg, %du = train.swiglu_grad %dy, %gate, %up
        : (tensor<8x176xf32>, tensor<8x176xf32>, tensor<8x176xf32>)
        -> (tensor<8x176xf32>, tensor<8x176xf32>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$dy, AnyRankedTensor:$gate,
                       AnyRankedTensor:$up);
  let results = (outs AnyRankedTensor:$dgate, AnyRankedTensor:$dup);
  let assemblyFormat = !strconcat("$dy `,` $gate `,` $up ", GradFn);
}

def Train_CrossEntropyGradOp : Train_ComputeOp<"cross_entropy_grad", [Pure]> {
  let summary = "(softmax - onehot) * scale";
  let description = [{
    `([t,v], [t], [t]) -> [t,v]`; columns that only pad the vocabulary get 0.

    Example:
    ```mlir
    %dl = train.cross_entropy_grad %logits, %targets, %lse
        {scale = 9.765625e-04 : f64}
        : (tensor<8x256xf32>, tensor<8xi32>, tensor<8xf32>) -> tensor<8x256xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$logits, AnyRankedTensor:$targets,
      AnyRankedTensor:$lse, F64Attr:$scale,
      OptionalAttr<StrArrayAttr>:$vocab_axes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$logits `,` $targets `,` $lse ", GradFn);
}

//===----------------------------------------------------------------------===//
// Accumulation and optimizer
//===----------------------------------------------------------------------===//

def Train_AccumulateOp : Train_Op<"accumulate", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds a weight gradient to its state, in fp32";
  let description = [{
    The first micro-batch of a step overwrites. The operation that made the
    gradient has this one use: its kernel adds into the state directly.

    Example:
    ```mlir
    train.accumulate @"w#gradient", %dw : tensor<32x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$state, AnyRankedTensor:$value);
  let assemblyFormat = "$state `,` $value attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Train_SumSquaresOp : Train_Op<"sum_squares", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "adds the squared L2 norm of gradients to the metrics";
  let description = [{
    Adds to `metrics`[1]. `replica_axes` has, per value, the mesh axes on which
    all ranks hold it equally: only coordinate 0 counts.

    Example:
    ```mlir
    train.sum_squares @metrics, %g0, %g1 : tensor<8x8xf32>, tensor<8xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$metrics,
      Variadic<AnyRankedTensor>:$values, OptionalAttr<ArrayAttr>:$replica_axes);
  let assemblyFormat =
      "$metrics `,` $values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def Train_ClipFactorOp : Train_Op<"clip_factor", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the factor of clipping by the global norm";
  let description = [{
    `metrics`[3] = sqrt(`metrics`[1]); `metrics`[2] = min(1, clip / (norm +
    1e-6)), and 1 when `clip` is 0.

    Example:
    ```mlir
    train.clip_factor @metrics {clip = 1.0 : f64}
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$metrics, F64Attr:$clip);
  let assemblyFormat = "$metrics attr-dict";
}

def Train_AdamwOp : Train_Op<"adamw", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "one AdamW update of a parameter";
  let description = [{
    Updates `<parameter>#momentum`, `#variance` and, where the precision has
    one, `#main_weight` in fp32 with decoupled weight decay; reads the learning
    rate and the bias corrections from `scalars` and the clip factor from
    `metrics`. The result is the parameter's new value (this rank's part), in
    the parameter's type.

    Example:
    ```mlir
    %p = train.adamw @w, %g metrics @metrics scalars @scalars
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1}
        : (tensor<8x8xf32>) -> tensor<8x8xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter, AnyRankedTensor:$gradient,
      FlatSymbolRefAttr:$metrics, FlatSymbolRefAttr:$scalars, F64Attr:$beta1,
      F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $parameter `,` $gradient `metrics` $metrics `scalars` $scalars
    attr-dict `:` functional-type($gradient, $result)
  }];
}

#endif // RECKON_DIALECT_TRAIN_GRAD_OPS_TD
