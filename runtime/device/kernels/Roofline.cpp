//===- Roofline.cpp - the least work of a kernel call ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Roofline.h"

#include "runtime/base/Fp8Layout.h"
#include "runtime/device/kernels/Calls.h"

#include <algorithm>

namespace reckon::device {

namespace {

constexpr int64_t f32 = 4, i32 = 4, f64 = 8;

/// An f32 result that is written, or read and written.
int64_t resultBytes(int64_t elements, bool accumulate) {
  return elements * f32 * (accumulate ? 2 : 1);
}

// --- Rows -------------------------------------------------------------------

KernelWork fillZero(const BytesCall &c) { return {c.bytes, 0, 0}; }
KernelWork copy(const BytesCall &c) { return {2 * c.bytes, 0, 0}; }
KernelWork add(const AddCall &c) {
  return {3 * c.n * dtypeBytes(c.dtype), 0, c.n};
}

KernelWork embedding(const EmbeddingCall &c) {
  int64_t words = std::min(c.rows, c.v);
  return {c.rows * i32 + (words + c.rows) * c.h * dtypeBytes(c.dtype), 0, 0};
}

KernelWork embeddingGrad(const EmbeddingCall &c) {
  // Without accumulation the rows of absent words are written too, as zeros.
  int64_t words = c.accumulate ? std::min(c.rows, c.v) : c.v;
  return {c.rows * i32 + c.rows * c.h * dtypeBytes(c.dtype) +
              resultBytes(words * c.h, c.accumulate),
          0, c.rows * c.h};
}

// An element of x costs a square and its sum, then x * root * w.
KernelWork rmsNorm(const NormCall &c) {
  int64_t n = c.rows * c.h;
  return {(2 * n + c.h) * dtypeBytes(c.dtype), 0, 4 * n};
}

// Sums of x^2 and of dy * w * x, then a * dy * w - b * x.
KernelWork rmsNormGradInput(const NormCall &c) {
  int64_t n = c.rows * c.h;
  return {(3 * n + c.h) * dtypeBytes(c.dtype), 0, 9 * n};
}

// The sum of x^2, then that of dy * x * root.
KernelWork rmsNormGradWeight(const NormCall &c) {
  int64_t n = c.rows * c.h;
  return {2 * n * dtypeBytes(c.dtype) + resultBytes(c.h, c.accumulate), 0,
          5 * n};
}

// Gate times its sigmoid (4 operations) times up.
KernelWork swiglu(const ActivationCall &c) {
  return {3 * c.n * dtypeBytes(c.dtype), 0, 5 * c.n};
}

// The sigmoid and gate's share, 4; dup, 1; dgate = dy * up * sigmoid *
// (1 + gate * (1 - sigmoid)), 6.
KernelWork swigluGrad(const ActivationCall &c) {
  return {5 * c.n * dtypeBytes(c.dtype), 0, 11 * c.n};
}

// As for RMSNorm, with the mean: 2 operations more for it and its difference,
// one for the bias.
KernelWork layerNorm(const NormCall &c) {
  int64_t n = c.rows * c.h;
  return {(2 * n + 2 * c.h) * dtypeBytes(c.dtype), 0, 7 * n};
}

KernelWork layerNormGradInput(const NormCall &c) {
  int64_t n = c.rows * c.h;
  return {(3 * n + c.h) * dtypeBytes(c.dtype), 0, 13 * n};
}

KernelWork layerNormGradWeight(const NormCall &c) {
  int64_t n = c.rows * c.h;
  return {2 * n * dtypeBytes(c.dtype) + 2 * resultBytes(c.h, c.accumulate), 0,
          8 * n};
}

// The cube and its sum, 5; the sigmoid's 4; the product.
KernelWork gelu(const ActivationCall &c) {
  return {2 * c.n * dtypeBytes(c.dtype), 0, 10 * c.n};
}

// The sigmoid as above, then its slope (6) and products.
KernelWork geluGrad(const ActivationCall &c) {
  return {3 * c.n * dtypeBytes(c.dtype), 0, 18 * c.n};
}

// --- Model ------------------------------------------------------------------

KernelWork linear(const LinearCall &c) {
  return {(c.rows * (c.n + c.k) + c.n * c.k) * dtypeBytes(c.dtype),
          2 * c.rows * c.n * c.k, 0};
}

KernelWork linearGradWeight(const LinearCall &c) {
  return {c.rows * (c.n + c.k) * dtypeBytes(c.dtype) +
              resultBytes(c.n * c.k, c.accumulate),
          2 * c.rows * c.n * c.k, 0};
}

// Four products and two sums a pair of elements.
KernelWork rope(const RopeCall &c) {
  int64_t n = c.rows * c.heads * c.d;
  return {2 * n * dtypeBytes(c.dtype) + c.s * c.d * f32, 0, 3 * n};
}

struct AttentionSizes {
  int64_t queries, keys, rows, scores; // elements
  explicit AttentionSizes(const AttentionCall &c)
      : queries(c.batch * c.s * c.hq * c.d), keys(c.batch * c.s * c.hkv * c.d),
        rows(c.batch * c.hq * c.s), scores(rows * (c.s + 1) / 2) {}
};

// A score is scaled, compared, subtracted from, raised and summed.
KernelWork attention(const AttentionCall &c) {
  AttentionSizes z(c);
  return {2 * (z.queries + z.keys) * dtypeBytes(c.dtype) + z.rows * f32,
          4 * c.d * z.scores, 5 * z.scores};
}

// dO, q, o and dq; k, v, dk and dv; lse and delta. A score is scaled,
// subtracted from and raised, its gradient subtracted from and multiplied.
// delta is a sum of products.
KernelWork attentionGrad(const AttentionCall &c) {
  AttentionSizes z(c);
  return {4 * (z.queries + z.keys) * dtypeBytes(c.dtype) + 2 * z.rows * f32,
          10 * c.d * z.scores, 5 * z.scores + 2 * z.queries};
}

// --- Loss and optimizer -----------------------------------------------------

KernelWork crossEntropyMax(const CrossEntropyCall &c) {
  int64_t words = c.rows * c.valid;
  return {words * dtypeBytes(c.dtype) + c.rows * f32, 0, words};
}

KernelWork crossEntropySum(const CrossEntropyCall &c) {
  int64_t words = c.rows * c.valid;
  return {words * dtypeBytes(c.dtype) + c.rows * (i32 + 3 * f32), 0, 3 * words};
}

KernelWork crossEntropyLoss(const CrossEntropyLossCall &c) {
  return {c.rows * 4 * f32 + (c.owner ? 2 * f64 : 0), 0, 4 * c.rows};
}

KernelWork crossEntropyGrad(const CrossEntropyCall &c) {
  int64_t words = c.rows * c.valid;
  return {(words + c.rows * c.v) * dtypeBytes(c.dtype) + c.rows * (i32 + f32),
          0, 4 * words};
}

KernelWork sumSquares(const SumSquaresCall &c) {
  return c.owner ? KernelWork{c.n * f32 + 2 * f64, 0, 2 * c.n} : KernelWork{};
}

KernelWork clipFactor(const ClipFactorCall &) { return {3 * f64, 0, 4}; }

// grad is read, main and the moments are read and written. Operations: 1 to
// scale the gradient, 3 and 4 for the moments, 3 for the root, 4 for main.
KernelWork adamw(const AdamwCall &c) {
  return {c.n * (7 * f32 + (c.cast ? 2 : 0)) + 4 * f64, 0, 15 * c.n};
}

// --- fp8 --------------------------------------------------------------------

KernelWork amax(const AmaxCall &c) { return {c.n * 2 + f32, 0, c.n}; }

// Codes are written with their padding. Each value is multiplied and rounded.
KernelWork castFp8(const CastFp8Call &c) {
  int64_t n = c.rows * c.columns, codes = fp8Codes(c.rows, c.columns);
  return {n * 2 + 2 * f32 + (c.straight + c.transposed) * codes, 0, 2 * n};
}

// Of the codes only the rows of padding need not be read.
KernelWork linearFp8(const LinearFp8Call &c) {
  int64_t k = fp8Padded(c.k), results = c.m * c.n;
  return {(c.m + c.n) * k + 2 * f32 +
              (c.accumulate ? 2 : 1) * results * dtypeBytes(c.to),
          2 * results * c.k, results};
}

template <typename Call>
Result<KernelWork> workOf(Result<Call> call, KernelWork (*work)(const Call &)) {
  if (!call)
    return call.error();
  return work(*call);
}

} // namespace

Result<KernelWork> kernelWork(Kernel kernel, const KernelCall &call) {
  switch (kernel) {
  case Kernel::None:
    break;
  case Kernel::FillZero:
    return workOf(parseFillZero(call), fillZero);
  case Kernel::Copy:
    return workOf(parseCopy(call), copy);
  case Kernel::Add:
    return workOf(parseAdd(call), add);
  case Kernel::Embedding:
    return workOf(parseEmbedding(call), embedding);
  case Kernel::EmbeddingGrad:
    return workOf(parseEmbeddingGrad(call), embeddingGrad);
  case Kernel::RmsNorm:
    return workOf(parseRmsNorm(call), rmsNorm);
  case Kernel::RmsNormGradInput:
    return workOf(parseRmsNormGradInput(call), rmsNormGradInput);
  case Kernel::RmsNormGradWeight:
    return workOf(parseRmsNormGradWeight(call), rmsNormGradWeight);
  case Kernel::Linear:
    return workOf(parseLinear(call), linear);
  case Kernel::LinearGradInput:
    return workOf(parseLinearGradInput(call), linear);
  case Kernel::LinearGradWeight:
    return workOf(parseLinearGradWeight(call), linearGradWeight);
  case Kernel::Rope:
    return workOf(parseRope(call), rope);
  case Kernel::Attention:
    return workOf(parseAttention(call), attention);
  case Kernel::AttentionGrad:
    return workOf(parseAttentionGrad(call), attentionGrad);
  case Kernel::Swiglu:
    return workOf(parseSwiglu(call), swiglu);
  case Kernel::SwigluGrad:
    return workOf(parseSwigluGrad(call), swigluGrad);
  case Kernel::CrossEntropyMax:
    return workOf(parseCrossEntropyMax(call), crossEntropyMax);
  case Kernel::CrossEntropySum:
    return workOf(parseCrossEntropySum(call), crossEntropySum);
  case Kernel::CrossEntropyLoss:
    return workOf(parseCrossEntropyLoss(call), crossEntropyLoss);
  case Kernel::CrossEntropyGrad:
    return workOf(parseCrossEntropyGrad(call), crossEntropyGrad);
  case Kernel::SumSquares:
    return workOf(parseSumSquares(call), sumSquares);
  case Kernel::ClipFactor:
    return workOf(parseClipFactor(call), clipFactor);
  case Kernel::Adamw:
    return workOf(parseAdamw(call), adamw);
  case Kernel::Amax:
    return workOf(parseAmax(call), amax);
  case Kernel::CastFp8:
    return workOf(parseCastFp8(call), castFp8);
  case Kernel::LinearFp8:
    return workOf(parseLinearFp8(call), linearFp8);
  case Kernel::LayerNorm:
    return workOf(parseLayerNorm(call), layerNorm);
  case Kernel::LayerNormGradInput:
    return workOf(parseLayerNormGradInput(call), layerNormGradInput);
  case Kernel::LayerNormGradWeight:
    return workOf(parseLayerNormGradWeight(call), layerNormGradWeight);
  case Kernel::Gelu:
    return workOf(parseGelu(call), gelu);
  case Kernel::GeluGrad:
    return workOf(parseGeluGrad(call), geluGrad);
  }
  return makeError(ExitCode::Incompatible,
                   "expected a kernel number between 1 and " +
                       std::to_string(kernelCount - 1) + ", got " +
                       std::to_string(static_cast<int>(kernel)) +
                       "; use the version that compiled the plan");
}

double rooflineSeconds(const KernelWork &work, const DeviceRates &rates) {
  auto seconds = [](int64_t amount, double rate) {
    return amount == 0 ? 0.0 : static_cast<double>(amount) / rate;
  };
  return std::max({seconds(work.bytes, rates.bytes),
                   seconds(work.productFlops, rates.productFlops),
                   seconds(work.otherFlops, rates.otherFlops)});
}

} // namespace reckon::device
