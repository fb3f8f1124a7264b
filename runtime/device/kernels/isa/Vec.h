//===- Vec.h - one vector register, and functions on it -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Compiled once per instruction set; everything here is inline and lives in a
// namespace of its own. Only compiler vector extensions are used, and
// intrinsics where those have no word for it (square root). Nothing from the
// standard library that could be emitted out of line: see RowKernels.h.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_ISA_VEC_H
#define RECKON_RUNTIME_DEVICE_KERNELS_ISA_VEC_H

#include "runtime/device/kernels/RowKernels.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifndef RECKON_ISA
#error "RECKON_ISA names the namespace of this instruction set"
#endif

#define RECKON_INLINE inline __attribute__((always_inline))

namespace reckon::device::RECKON_ISA {

#if defined(__AVX512F__)
inline constexpr int W = 16;
#elif defined(__AVX2__)
inline constexpr int W = 8;
#else
inline constexpr int W = 4;
#endif

typedef float F __attribute__((vector_size(W * 4)));
typedef int32_t I __attribute__((vector_size(W * 4)));
typedef float FMem __attribute__((vector_size(W * 4), aligned(4), may_alias));
typedef uint32_t U __attribute__((vector_size(W * 4)));
typedef uint16_t H __attribute__((vector_size(W * 2)));
typedef uint16_t HMem
    __attribute__((vector_size(W * 2), aligned(2), may_alias));

RECKON_INLINE F load(const float *p) {
  return *reinterpret_cast<const FMem *>(p);
}
RECKON_INLINE void store(float *p, F v) { *reinterpret_cast<FMem *>(p) = v; }
RECKON_INLINE F splat(float x) { return F{} + x; }

// What the compiler makes of the conversions is four times as long, so the
// instructions are named where there are some.
RECKON_INLINE U wordsOf(H halves) {
#if defined(__AVX512F__)
  return (U)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)halves);
#elif defined(__AVX2__)
  return (U)_mm256_cvtepu16_epi32((__m128i)halves);
#else
  return __builtin_convertvector(halves, U);
#endif
}
RECKON_INLINE H halvesOf(U words) {
#if defined(__AVX512F__)
  return (H)_mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)words);
#else
  return __builtin_convertvector(words, H);
#endif
}

RECKON_INLINE F load(const Bf16 *p) {
  return (F)(wordsOf(*reinterpret_cast<const HMem *>(p)) << 16);
}
/// Rounds to nearest even; NaN stays NaN.
RECKON_INLINE void store(Bf16 *p, F v) {
  U bits = (U)v;
  U rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  U nan = (bits >> 16) | 0x40;
  *reinterpret_cast<HMem *>(p) = halvesOf(v == v ? rounded : nan);
}

RECKON_INLINE float load1(const float *p) { return *p; }
RECKON_INLINE float load1(const Bf16 *p) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(p->bits) << 16);
}
RECKON_INLINE void store1(float *p, float x) { *p = x; }
RECKON_INLINE void store1(Bf16 *p, float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  p->bits = static_cast<uint16_t>(x == x ? rounded : (bits >> 16) | 0x40);
}

/// The first n < W lanes; the others are `rest`.
template <typename T>
RECKON_INLINE F loadPart(const T *p, int64_t n, float rest = 0.0f) {
  F v = splat(rest);
  for (int64_t i = 0; i < n; ++i)
    v[i] = load1(p + i);
  return v;
}
template <typename T> RECKON_INLINE void storePart(T *p, F v, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    store1(p + i, v[i]);
}
/// n lanes, W or fewer.
template <typename T> RECKON_INLINE F take(const T *p, int64_t n) {
  return n == W ? load(p) : loadPart(p, n);
}
template <typename T> RECKON_INLINE void put(T *p, F v, int64_t n) {
  n == W ? store(p, v) : storePart(p, v, n);
}

RECKON_INLINE F max(F a, F b) { return a > b ? a : b; }

/// Sum of the lanes, pairwise.
RECKON_INLINE float sum(F v) {
  float lanes[W];
  store(lanes, v);
#pragma GCC unroll 4
  for (int step = W / 2; step > 0; step /= 2)
    for (int i = 0; i < step; ++i)
      lanes[i] += lanes[i + step];
  return lanes[0];
}
RECKON_INLINE float maxLane(F v) {
  float lanes[W];
  store(lanes, v);
  float best = lanes[0];
  for (int i = 1; i < W; ++i)
    best = lanes[i] > best ? lanes[i] : best;
  return best;
}

RECKON_INLINE F sqrt(F v) {
#if defined(__AVX512F__)
  return (F)_mm512_maskz_sqrt_ps(0xffff, (__m512)v);
#elif defined(__AVX2__)
  return (F)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE2__)
  return (F)_mm_sqrt_ps((__m128)v);
#else
  for (int i = 0; i < W; ++i)
    v[i] = __builtin_sqrtf(v[i]);
  return v;
#endif
}

/// e^x to about 1 ulp. Below -86.64 the result is 0, above 88.72 infinity;
/// NaN stays NaN. Reduction and polynomial are those of Cephes' expf.
RECKON_INLINE F exp(F x) {
  const F low = splat(-86.6434f); // 2^-125: the scale below stays normal
  const F high = splat(88.7228f);
  const F magic = splat(12582912.0f); // 1.5 * 2^23: rounds to an integer
  F bounded = x < low ? low : x;
  bounded = bounded > high ? high : bounded;
  F shifted = bounded * 1.44269504088896341f + magic;
  F n = shifted - magic;
  F r = bounded - n * 0.693359375f;
  r = r - n * -2.12194440e-4f;
  F p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  // 2^(n-1), then doubled: n may be 128.
  I bits = (I)shifted << 23;
  F scale = (F)(bits + (126 << 23));
  F result = p * scale * 2.0f;
  result = x < low ? F{} : result;
  return x > high ? splat(__builtin_inff()) : result;
}

/// Natural logarithm of positive normal numbers to about 1 ulp (Cephes' logf).
RECKON_INLINE F log(F x) {
  I bits = (I)x;
  I exponent = ((bits >> 23) & 255) - 126;
  F m = (F)((bits & 0x007fffff) | 0x3f000000); // [0.5, 1)
  I small = m < 0.70710678118654752440f;       // all ones where true
  exponent += small;
  F e = __builtin_convertvector(exponent, F);
  m = (small ? m + m : m) - 1.0f;
  F z = m * m;
  F p = splat(7.0376836292e-2f);
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  F y = p * m * z;
  y = y + e * -2.12194440e-4f;
  y = y - 0.5f * z;
  return (m + y) + e * 0.693359375f;
}

RECKON_INLINE F sigmoid(F x) { return 1.0f / (1.0f + exp(-x)); }

} // namespace reckon::device::RECKON_ISA

#endif // RECKON_RUNTIME_DEVICE_KERNELS_ISA_VEC_H
