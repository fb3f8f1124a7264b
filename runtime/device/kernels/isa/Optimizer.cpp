//===- Optimizer.cpp - squared norm and AdamW -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

namespace reckon::device::RECKON_ISA {

namespace {

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
  for (int64_t i = begin; i < end; i += W) {
    int64_t n = end - i < W ? end - i : W;
    Updated u = update(s, take(s.grad + i, n), take(s.main + i, n),
                       take(s.m + i, n), take(s.v + i, n));
    put(s.main + i, u.main, n);
    put(s.m + i, u.m, n);
    put(s.v + i, u.v, n);
    if (s.param)
      put(s.param + i, u.main, n);
  }
}

} // namespace reckon::device::RECKON_ISA
