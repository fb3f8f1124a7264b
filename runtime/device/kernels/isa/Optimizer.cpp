//===- Optimizer.cpp - squared norm and AdamW -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

namespace reckon::device::RECKON_ISA {

namespace {

/// bf16 of an f32, to nearest even; NaN stays NaN.
RECKON_INLINE uint16_t toBf16(float x) {
  uint32_t bits = __builtin_bit_cast(uint32_t, x);
  if (x != x)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct Updated {
  F main, m, v;
};

RECKON_INLINE Updated update(const AdamwStep &s, F grad, F main, F m, F v) {
  F g = grad * s.factor;
  main = main * s.keep;
  m = m * s.beta1 + g * s.oneMinusBeta1;
  v = v * s.beta2 + g * g * s.oneMinusBeta2;
  F root = sqrt(v) * s.inverseRoot + s.eps;
  main = main - m / root * s.stepSize;
  return {main, m, v};
}

} // namespace

// Sixteen f64 sums whatever the register width, so that every variant adds in
// the same order; a product of two f32 is exact in f64.
double sumSquares(const float *x, int64_t n) {
  double sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; ++j)
      sums[j] += static_cast<double>(x[i + j]) * x[i + j];
  for (int j = 0; i + j < n; ++j)
    sums[j] += static_cast<double>(x[i + j]) * x[i + j];
  for (int step = 8; step > 0; step /= 2)
    for (int j = 0; j < step; ++j)
      sums[j] += sums[j + step];
  return sums[0];
}

void adamw(const AdamwStep &s, int64_t begin, int64_t end) {
  int64_t i = begin;
  for (; i + W <= end; i += W) {
    Updated u = update(s, load(s.grad + i), load(s.main + i), load(s.m + i),
                       load(s.v + i));
    store(s.main + i, u.main);
    store(s.m + i, u.m);
    store(s.v + i, u.v);
  }
  if (int64_t n = end - i; n > 0) {
    Updated u = update(s, loadPart(s.grad + i, n), loadPart(s.main + i, n),
                       loadPart(s.m + i, n), loadPart(s.v + i, n));
    storePart(s.main + i, u.main, n);
    storePart(s.m + i, u.m, n);
    storePart(s.v + i, u.v, n);
  }
  if (s.param)
    for (i = begin; i < end; ++i)
      s.param[i] = toBf16(s.main[i]);
}

} // namespace reckon::device::RECKON_ISA
