//===- Calls.h - kernel calls, checked and read ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What a kernel needs to know beside its operands' addresses: one small struct
// for each kernel, or for several that take the same. parseX() checks a call
// against the conventions of Kernels.h and reads it; it fails with
// ExitCode::Incompatible and a sentence that tells what was expected. All
// devices share it, so that none accepts what another refuses.
//
// Sizes are in elements unless a name says bytes; `dtype` is the storage type
// of activations and parameters, F32 or BF16. The structs are trivially
// copyable, to be captured by prepared kernels.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_CALLS_H
#define RECKON_RUNTIME_DEVICE_KERNELS_CALLS_H

#include "runtime/device/Kernels.h"

namespace reckon::device {

// --- Rows (CallsRows.cpp) ---------------------------------------------------

/// fill_zero and copy.
struct BytesCall {
  int64_t bytes = 0;
};
Result<BytesCall> parseFillZero(const KernelCall &call);
Result<BytesCall> parseCopy(const KernelCall &call);

/// add: n elements of each operand.
struct AddCall {
  int64_t n = 0;
  DType dtype = DType::F32;
};
Result<AddCall> parseAdd(const KernelCall &call);

/// embedding and embedding_grad: `rows` tokens, a table [v, h] whose first row
/// is word `offset`. `accumulate` is of the gradient.
struct EmbeddingCall {
  int64_t rows = 0, v = 0, h = 0, offset = 0;
  bool accumulate = false;
  DType dtype = DType::F32;
};
Result<EmbeddingCall> parseEmbedding(const KernelCall &call);
Result<EmbeddingCall> parseEmbeddingGrad(const KernelCall &call);

/// rms_norm, layer_norm and their gradients on [rows, h]. `accumulate` is of
/// the weight's.
struct NormCall {
  int64_t rows = 0, h = 0;
  float eps = 0.0f;
  bool accumulate = false;
  DType dtype = DType::F32;
};
Result<NormCall> parseRmsNorm(const KernelCall &call);
Result<NormCall> parseRmsNormGradInput(const KernelCall &call);
Result<NormCall> parseRmsNormGradWeight(const KernelCall &call);
Result<NormCall> parseLayerNorm(const KernelCall &call);
Result<NormCall> parseLayerNormGradInput(const KernelCall &call);
Result<NormCall> parseLayerNormGradWeight(const KernelCall &call);

/// swiglu, gelu and their gradients: n = T * F elements of each operand.
struct ActivationCall {
  int64_t n = 0;
  DType dtype = DType::F32;
};
Result<ActivationCall> parseSwiglu(const KernelCall &call);
Result<ActivationCall> parseSwigluGrad(const KernelCall &call);
Result<ActivationCall> parseGelu(const KernelCall &call);
Result<ActivationCall> parseGeluGrad(const KernelCall &call);

// --- Model (CallsModel.cpp) -------------------------------------------------

/// linear and its gradients: x[rows, k], w[n, k], y[rows, n]. `accumulate` is
/// of the weight's gradient.
struct LinearCall {
  int64_t rows = 0, n = 0, k = 0;
  bool accumulate = false;
  DType dtype = DType::F32;
};
Result<LinearCall> parseLinear(const KernelCall &call);
Result<LinearCall> parseLinearGradInput(const KernelCall &call);
Result<LinearCall> parseLinearGradWeight(const KernelCall &call);

/// rope on [rows, heads * d] with a table [s, d]; d is even, rows a multiple
/// of s.
struct RopeCall {
  int64_t rows = 0, heads = 0, d = 0, s = 0;
  bool inverse = false;
  DType dtype = DType::F32;
};
Result<RopeCall> parseRope(const KernelCall &call);

/// attention and attention_grad: `batch` sequences of s tokens, hq query heads
/// on hkv key heads of d elements; hq is a multiple of hkv.
struct AttentionCall {
  int64_t batch = 0, hq = 0, hkv = 0, d = 0, s = 0;
  DType dtype = DType::F32;
};
Result<AttentionCall> parseAttention(const KernelCall &call);
Result<AttentionCall> parseAttentionGrad(const KernelCall &call);

// --- Loss and optimizer (CallsLoss.cpp) -------------------------------------

/// cross_entropy_max, _sum and _grad on logits [rows, v], of which the first
/// `valid` <= v columns are words, the first of them word `offset`. cross_
/// entropy_max has no offset; `scale` is of the gradient.
struct CrossEntropyCall {
  int64_t rows = 0, v = 0, valid = 0, offset = 0;
  float scale = 1.0f;
  DType dtype = DType::F32;
};
Result<CrossEntropyCall> parseCrossEntropyMax(const KernelCall &call);
Result<CrossEntropyCall> parseCrossEntropySum(const KernelCall &call);
Result<CrossEntropyCall> parseCrossEntropyGrad(const KernelCall &call);

struct CrossEntropyLossCall {
  int64_t rows = 0;
  bool owner = false;
};
Result<CrossEntropyLossCall> parseCrossEntropyLoss(const KernelCall &call);

struct SumSquaresCall {
  int64_t n = 0;
  bool owner = false;
};
Result<SumSquaresCall> parseSumSquares(const KernelCall &call);

struct ClipFactorCall {
  double clip = 0.0;
};
Result<ClipFactorCall> parseClipFactor(const KernelCall &call);

/// adamw; `cast` when there is a bf16 parameter to write.
struct AdamwCall {
  int64_t n = 0;
  double beta1 = 0.0, beta2 = 0.0, eps = 0.0, decay = 0.0;
  bool cast = false;
};
Result<AdamwCall> parseAdamw(const KernelCall &call);

// --- fp8 (CallsFp8.cpp) -----------------------------------------------------

/// amax: n elements of x, in bf16.
struct AmaxCall {
  int64_t n = 0;
};
Result<AmaxCall> parseAmax(const KernelCall &call);

/// cast_fp8: x[rows, columns] to `codes`, F8E4M3 or F8E5M2. Which outputs there
/// are: the scale, then `straight` codes[rows', columns'], then `transposed`
/// codes[columns', rows'], where n' is fp8Padded(n).
struct CastFp8Call {
  int64_t rows = 0, columns = 0;
  DType codes = DType::F8E4M3;
  bool straight = false, transposed = false;
};
Result<CastFp8Call> parseCastFp8(const KernelCall &call);

/// linear_fp8: y[m, n] = a[m', k'] * b[n', k']^T with a and b of F8E4M3 or
/// F8E5M2; y is BF16, or F32, where `accumulate` may add.
struct LinearFp8Call {
  int64_t m = 0, n = 0, k = 0;
  DType a = DType::F8E4M3, b = DType::F8E4M3, to = DType::BF16;
  bool accumulate = false;
};
Result<LinearFp8Call> parseLinearFp8(const KernelCall &call);

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_CALLS_H
