//===- Elementwise.cpp - add, rotary embeddings, SwiGLU, GELU -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

namespace reckon::device::RECKON_ISA {

template <typename T>
void Elementwise<T>::add(const T *a, const T *b, T *c, int64_t n) {
  int64_t i = 0;
  for (; i + W <= n; i += W)
    store(c + i, load(a + i) + load(b + i));
  for (; i < n; ++i)
    store1(c + i, load1(a + i) + load1(b + i));
}

template <typename T>
void Elementwise<T>::accumulate(const T *x, float *sum, int64_t n) {
  int64_t i = 0;
  for (; i + W <= n; i += W)
    store(sum + i, load(sum + i) + load(x + i));
  for (; i < n; ++i)
    sum[i] += load1(x + i);
}

template <typename T>
void Elementwise<T>::rope(const T *x, const float *table, T *y,
                          int64_t firstRow, int64_t rows, int64_t heads,
                          int64_t d, int64_t s, float sign) {
  int64_t half = d / 2;
  for (int64_t r = firstRow; r < firstRow + rows; ++r) {
    const float *cosines = table + (r % s) * d;
    const float *sines = cosines + half;
    for (int64_t head = 0; head < heads; ++head) {
      const T *in = x + (r * heads + head) * d;
      T *out = y + (r * heads + head) * d;
      int64_t i = 0;
      for (; i + W <= half; i += W) {
        F a = load(in + i), b = load(in + half + i);
        F c = load(cosines + i), t = load(sines + i) * sign;
        store(out + i, a * c - b * t);
        store(out + half + i, b * c + a * t);
      }
      for (; i < half; ++i) {
        float a = load1(in + i), b = load1(in + half + i);
        float c = cosines[i], t = sines[i] * sign;
        store1(out + i, a * c - b * t);
        store1(out + half + i, b * c + a * t);
      }
    }
  }
}

template <typename T>
void Elementwise<T>::swiglu(const T *gate, const T *up, T *y, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i < W ? n - i : W;
    F g = take(gate + i, left);
    put(y + i, g * sigmoid(g) * take(up + i, left), left);
  }
}

// silu'(g) = sigmoid(g) * (1 + g * (1 - sigmoid(g))).
template <typename T>
void Elementwise<T>::swigluGrad(const T *dy, const T *gate, const T *up,
                                T *dgate, T *dup, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i < W ? n - i : W;
    F d = take(dy + i, left), g = take(gate + i, left);
    F u = take(up + i, left), s = sigmoid(g);
    put(dgate + i, d * u * (s * (1.0f + g * (1.0f - s))), left);
    put(dup + i, d * (g * s), left);
  }
}

// The tanh form of GELU (Hendrycks, Gimpel: Gaussian error linear units, 2016):
// y = x / 2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3). With
// (1 + tanh(u)) / 2 = sigmoid(2u) there is no cancellation for negative x.
namespace {
constexpr float geluScale = 1.5957691216057308f; // 2 * sqrt(2 / pi)
constexpr float geluCubic = 0.044715f;

RECKON_INLINE F geluGate(F x) {
  return sigmoid(geluScale * (x + geluCubic * x * x * x));
}
} // namespace

template <typename T> void Elementwise<T>::gelu(const T *x, T *y, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i < W ? n - i : W;
    F v = take(x + i, left);
    put(y + i, v * geluGate(v), left);
  }
}

// dy/dx = s + x s (1 - s) d(2u)/dx. A far x has s (1 - s) = 0 and may have an
// infinite slope inside, so those lanes take s alone.
template <typename T>
void Elementwise<T>::geluGrad(const T *dy, const T *x, T *dx, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i < W ? n - i : W;
    F v = take(x + i, left), s = geluGate(v), bell = s * (1.0f - s);
    F inner = geluScale * (1.0f + 3.0f * geluCubic * v * v);
    F slope = s + v * bell * inner;
    put(dx + i, take(dy + i, left) * (bell == 0.0f ? s : slope), left);
  }
}

template struct Elementwise<float>;
template struct Elementwise<Bf16>;

void widen(const Bf16 *from, float *to, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i < W ? n - i : W;
    put(to + i, take(from + i, left), left);
  }
}

void narrow(const float *from, Bf16 *to, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    int64_t left = n - i < W ? n - i : W;
    put(to + i, take(from + i, left), left);
  }
}

} // namespace reckon::device::RECKON_ISA
