//===- Gemm.h - small matrix products held in registers -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_ISA_GEMM_H
#define RECKON_RUNTIME_DEVICE_KERNELS_ISA_GEMM_H

#include "runtime/device/kernels/isa/Vec.h"

#include <utility>

namespace reckon::device::RECKON_ISA {

/// How the left operand lies: a(i, l) = a[i * lda + l], or a[l * lda + i].
enum class Left { Rows, Columns };

/// One tile of rows x (vectors * W) sums over l, in registers. What the sums
/// lack of the 32 (AVX-512) or 16 registers holds vectors of b and one
/// broadcast of a.
template <int Rows, int Vectors, Left Lies>
RECKON_INLINE void tile(const float *a, int64_t lda, const float *b,
                        int64_t ldb, float *c, int64_t ldc, int64_t length,
                        bool accumulate) {
  F sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      sums[i][j] = accumulate ? load(c + i * ldc + j * W) : F{};
  for (int64_t l = 0; l < length; ++l) {
    F right[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      right[j] = load(b + l * ldb + j * W);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      float left = Lies == Left::Rows ? a[i * lda + l] : a[l * lda + i];
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j)
        sums[i][j] += left * right[j];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j)
      store(c + i * ldc + j * W, sums[i][j]);
}

/// A column panel of c, `Vectors` vectors wide.
template <int Vectors, Left Lies>
inline void panel(int64_t m, const float *a, int64_t lda, const float *b,
                  int64_t ldb, float *c, int64_t ldc, int64_t length,
                  bool accumulate) {
  constexpr int rows = 6;
  auto at = [=](int64_t i) { return Lies == Left::Rows ? a + i * lda : a + i; };
  int64_t i = 0;
  for (; i + rows <= m; i += rows)
    tile<rows, Vectors, Lies>(at(i), lda, b, ldb, c + i * ldc, ldc, length,
                              accumulate);
  if (m - i >= 4) {
    tile<4, Vectors, Lies>(at(i), lda, b, ldb, c + i * ldc, ldc, length,
                           accumulate);
    i += 4;
  }
  if (m - i >= 2) {
    tile<2, Vectors, Lies>(at(i), lda, b, ldb, c + i * ldc, ldc, length,
                           accumulate);
    i += 2;
  }
  if (m > i)
    tile<1, Vectors, Lies>(at(i), lda, b, ldb, c + i * ldc, ldc, length,
                           accumulate);
}

/// c[m, n] = (or +=) sum over l < length of a(i, l) * b[l, j].
template <Left Lies>
inline void gemm(int64_t m, int64_t n, int64_t length, const float *a,
                 int64_t lda, const float *b, int64_t ldb, float *c,
                 int64_t ldc, bool accumulate) {
  int64_t j = 0;
  if constexpr (W == 16)
    for (; j + 4 * W <= n; j += 4 * W)
      panel<4, Lies>(m, a, lda, b + j, ldb, c + j, ldc, length, accumulate);
  for (; j + 2 * W <= n; j += 2 * W)
    panel<2, Lies>(m, a, lda, b + j, ldb, c + j, ldc, length, accumulate);
  for (; j + W <= n; j += W)
    panel<1, Lies>(m, a, lda, b + j, ldb, c + j, ldc, length, accumulate);
  for (; j < n; ++j)
    for (int64_t i = 0; i < m; ++i) {
      float total = accumulate ? c[i * ldc + j] : 0.0f;
      for (int64_t l = 0; l < length; ++l)
        total += (Lies == Left::Rows ? a[i * lda + l] : a[l * lda + i]) *
                 b[l * ldb + j];
      c[i * ldc + j] = total;
    }
}

/// a0 b0 a1 b1 ... of the lower (Half 0) or the upper halves of two vectors.
template <int Half> RECKON_INLINE F interleave(F a, F b) {
  return [&]<int... I>(std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(a, b,
                                   (I / 2 + I % 2 * W + Half * W / 2)...);
  }(std::make_integer_sequence<int, W>());
}

/// to[c, r] = from[r, c] for a block of rows x columns.
template <typename From, typename To>
inline void transpose(const From *from, int64_t ldFrom, int64_t rows,
                      int64_t columns, To *to, int64_t ldTo) {
  int64_t fullRows = rows - rows % W, fullColumns = columns - columns % W;
  for (int64_t r = 0; r < fullRows; r += W)
    for (int64_t c = 0; c < fullColumns; c += W) {
      F v[W], t[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i)
        v[i] = load(from + (r + i) * ldFrom + c);
    // Each round interleaves vector i with i + W/2; log2(W) of them rotate
    // the bits of (row, column) until they have changed places.
#pragma GCC unroll 4
      for (int round = 1; round < W; round *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < W / 2; ++i) {
          t[2 * i] = interleave<0>(v[i], v[i + W / 2]);
          t[2 * i + 1] = interleave<1>(v[i], v[i + W / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i)
          v[i] = t[i];
      }
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i)
        store(to + (c + i) * ldTo + r, v[i]);
    }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < fullRows ? fullColumns : 0; c < columns; ++c)
      store1(to + c * ldTo + r, load1(from + r * ldFrom + c));
}

} // namespace reckon::device::RECKON_ISA

#endif // RECKON_RUNTIME_DEVICE_KERNELS_ISA_GEMM_H
