//===- Fp8Layout.h - how a matrix of fp8 codes lies in memory -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The one rule that planner, compiler, proof and devices share.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_BASE_FP8LAYOUT_H
#define RECKON_RUNTIME_BASE_FP8LAYOUT_H

#include <cstdint>

#ifdef __CUDACC__
#define RECKON_HOST_DEVICE __host__ __device__
#else
#define RECKON_HOST_DEVICE
#endif

namespace reckon {

/// Matrix products take whole blocks of this many codes in both dimensions
/// (cuBLASLt: fp8 operands have dimensions that are multiples of 16).
inline constexpr int64_t fp8Block = 16;

/// A dimension of a matrix of codes: n, and zeros up to a whole block.
RECKON_HOST_DEVICE constexpr int64_t fp8Padded(int64_t n) {
  return (n + fp8Block - 1) / fp8Block * fp8Block;
}

/// Codes of a matrix, a byte each; its transpose has as many.
RECKON_HOST_DEVICE constexpr int64_t fp8Codes(int64_t rows, int64_t columns) {
  return fp8Padded(rows) * fp8Padded(columns);
}

} // namespace reckon

#undef RECKON_HOST_DEVICE

#endif // RECKON_RUNTIME_BASE_FP8LAYOUT_H
