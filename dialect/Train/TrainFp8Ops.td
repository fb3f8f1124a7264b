//===- TrainFp8Ops.td - products in eight bits ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Operations on a rank's shapes: `dist-quantize` puts them in the place of the
// decoder layers' linears when the precision is fp8. They have no sharding rule
// because they exist only after partitioning, where maxima over ranks are
// collectives.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_TRAIN_FP8_OPS_TD
#define RECKON_DIALECT_TRAIN_FP8_OPS_TD

include "dialect/Train/TrainBase.td"

defvar Fp8Fn = "attr-dict `:` functional-type(operands, results)";

class Train_Fp8Op<string mnemonic> : Train_Op<mnemonic, [Pure,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    DeclareOpInterfaceMethods<FlopsOpInterface>]> {
  let hasVerifier = 1;
}

def Train_AmaxOp : Train_Fp8Op<"amax"> {
  let summary = "the largest magnitude of a rank's part of a tensor";
  let description = [{
    NaN if any element is.

    Example:
    ```mlir
    %m = train.amax %x : (tensor<8x64xbf16>) -> tensor<1xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat("$x ", Fp8Fn);
}

def Train_CastFp8Op : Train_Fp8Op<"cast_fp8"> {
  let summary = "a tensor as fp8 codes and one scale";
  let description = [{
    `x` is about `scale` times the codes' values; `scale` is `amax` over the
    largest code. The first result is the scale, then come the codes
    (`straight`) and their transpose (`transposed`), at least one of them. Their
    dimensions are those of x rounded up to blocks of 16, filled with zeros.

    Example:
    ```mlir
    %s, %c, %t = train.cast_fp8 %x, %m straight transposed
        : (tensor<8x64xbf16>, tensor<1xf32>)
        -> (tensor<1xf32>, tensor<16x64xf8E4M3FN>, tensor<64x16xf8E4M3FN>)
    ```
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$amax,
                       UnitAttr:$straight, UnitAttr:$transposed);
  let results = (outs AnyRankedTensor:$scale, Variadic<AnyRankedTensor>:$codes);
  let assemblyFormat = !strconcat(
      "$x `,` $amax (`straight` $straight^)? (`transposed` $transposed^)? ",
      Fp8Fn);
  let extraClassDeclaration = [{
    /// The codes, their transpose; null where not made.
    ::mlir::Value getStraightCodes() {
      return getStraight() ? getCodes().front() : ::mlir::Value();
    }
    ::mlir::Value getTransposedCodes() {
      return getTransposed() ? getCodes().back() : ::mlir::Value();
    }
  }];
}

def Train_LinearFp8Op : Train_Fp8Op<"linear_fp8"> {
  let summary = "product of two tensors of codes, both with the sum inside";
  let description = [{
    `[m',k'], [n',k'] -> [m,n]`, where m' is m rounded up to blocks of 16: the
    two scales times the sum over `k` of a * b^T. Forward: (x, w). Input
    gradient: (dy, w transposed). Weight gradient, in f32: (dy transposed,
    x transposed).

    Example:
    ```mlir
    %y = train.linear_fp8 %a, %sa, %b, %sb {k = 64 : i64}
        : (tensor<16x64xf8E4M3FN>, tensor<1xf32>,
           tensor<32x64xf8E4M3FN>, tensor<1xf32>) -> tensor<8x32xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$aScale,
      AnyRankedTensor:$b, AnyRankedTensor:$bScale, I64Attr:$k);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = !strconcat(
      "$a `,` $aScale `,` $b `,` $bScale ", Fp8Fn);
}

#endif // RECKON_DIALECT_TRAIN_FP8_OPS_TD
