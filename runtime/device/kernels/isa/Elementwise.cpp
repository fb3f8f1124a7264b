//===- Elementwise.cpp - add, rotary embeddings, SwiGLU -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

namespace reckon::device::RECKON_ISA {

void add(const float *a, const float *b, float *c, int64_t n) {
  int64_t i = 0;
  for (; i + W <= n; i += W)
    store(c + i, load(a + i) + load(b + i));
  for (; i < n; ++i)
    c[i] = a[i] + b[i];
}

void rope(const float *x, const float *table, float *y, int64_t firstRow,
          int64_t rows, int64_t heads, int64_t d, int64_t s, float sign) {
  int64_t half = d / 2;
  for (int64_t r = firstRow; r < firstRow + rows; ++r) {
    const float *cosines = table + (r % s) * d;
    const float *sines = cosines + half;
    for (int64_t head = 0; head < heads; ++head) {
      const float *in = x + (r * heads + head) * d;
      float *out = y + (r * heads + head) * d;
      int64_t i = 0;
      for (; i + W <= half; i += W) {
        F a = load(in + i), b = load(in + half + i);
        F c = load(cosines + i), t = load(sines + i) * sign;
        store(out + i, a * c - b * t);
        store(out + half + i, b * c + a * t);
      }
      for (; i < half; ++i) {
        float a = in[i], b = in[half + i];
        float c = cosines[i], t = sines[i] * sign;
        out[i] = a * c - b * t;
        out[half + i] = b * c + a * t;
      }
    }
  }
}

void swiglu(const float *gate, const float *up, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i;
    if (left >= W) {
      F g = load(gate + i);
      store(y + i, g * sigmoid(g) * load(up + i));
    } else {
      F g = loadPart(gate + i, left);
      storePart(y + i, g * sigmoid(g) * loadPart(up + i, left), left);
    }
  }
}

// silu'(g) = sigmoid(g) * (1 + g * (1 - sigmoid(g))).
void swigluGrad(const float *dy, const float *gate, const float *up,
                float *dgate, float *dup, int64_t n) {
  auto step = [](F d, F g, F u, F &dg, F &du) {
    F s = sigmoid(g);
    dg = d * u * (s * (1.0f + g * (1.0f - s)));
    du = d * (g * s);
  };
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i;
    F dg, du;
    if (left >= W) {
      step(load(dy + i), load(gate + i), load(up + i), dg, du);
      store(dgate + i, dg);
      store(dup + i, du);
    } else {
      step(loadPart(dy + i, left), loadPart(gate + i, left),
           loadPart(up + i, left), dg, du);
      storePart(dgate + i, dg, left);
      storePart(dup + i, du, left);
    }
  }
}

} // namespace reckon::device::RECKON_ISA
