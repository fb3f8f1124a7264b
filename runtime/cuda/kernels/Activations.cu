//===- Activations.cu - SwiGLU and GELU, forward and backward -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Lanes.cuh"

namespace reckon::cuda {

namespace {

/// expf overflows to infinity for x below -88, which gives the right 0.
__device__ __forceinline__ float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

template <typename T>
__global__ void __launch_bounds__(flatThreads)
    swigluKernel(const T *gate, const T *up, T *y, int64_t n, bool wide) {
  forLanes<lanesOf<T>>(n, wide, [=](int64_t i, auto lanes) {
    constexpr int N = decltype(lanes)::value;
    Lanes<T, N> gates = loadLanes<N>(gate + i), ups = loadLanes<N>(up + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float g = toFloat(gates.at[k]);
      gates.at[k] = fromFloat<T>(g * sigmoid(g) * toFloat(ups.at[k]));
    }
    storeLanes(y + i, gates);
  });
}

// silu'(g) = sigmoid(g) * (1 + g * (1 - sigmoid(g))). An output may be an
// input: a thread reads its lanes of all of them first.
template <typename T>
__global__ void __launch_bounds__(flatThreads)
    swigluGradKernel(const T *dy, const T *gate, const T *up, T *dgate, T *dup,
                     int64_t n, bool wide) {
  forLanes<lanesOf<T>>(n, wide, [=](int64_t i, auto lanes) {
    constexpr int N = decltype(lanes)::value;
    Lanes<T, N> d = loadLanes<N>(dy + i), gates = loadLanes<N>(gate + i),
                ups = loadLanes<N>(up + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float g = toFloat(gates.at[k]), s = sigmoid(g), by = toFloat(d.at[k]);
      float u = toFloat(ups.at[k]);
      gates.at[k] = fromFloat<T>(by * u * (s * (1.0f + g * (1.0f - s))));
      ups.at[k] = fromFloat<T>(by * (g * s));
    }
    storeLanes(dgate + i, gates);
    storeLanes(dup + i, ups);
  });
}

// The tanh form of GELU (Hendrycks, Gimpel: Gaussian error linear units, 2016):
// y = x / 2 * (1 + tanh(u)), u = sqrt(2/pi) * (x + 0.044715 x^3). With
// (1 + tanh(u)) / 2 = sigmoid(2u) there is no cancellation for negative x.
struct Gelu {
  static constexpr float scale = 1.5957691216057308f; // 2 * sqrt(2 / pi)
  static constexpr float cubic = 0.044715f;
  __device__ static float gate(float x) {
    return sigmoid(scale * (x + cubic * x * x * x));
  }
  /// dy/dx = s + x s (1 - s) d(2u)/dx.
  __device__ static float slope(float x) {
    float s = gate(x);
    float inner = scale * (1.0f + 3.0f * cubic * x * x);
    // A far x has s (1 - s) = 0 and may have an infinite inner.
    float bell = s * (1.0f - s);
    return bell == 0.0f ? s : s + x * bell * inner;
  }
};

template <typename T>
__global__ void __launch_bounds__(flatThreads)
    geluKernel(const T *x, T *y, int64_t n, bool wide) {
  forLanes<lanesOf<T>>(n, wide, [=](int64_t i, auto lanes) {
    constexpr int N = decltype(lanes)::value;
    Lanes<T, N> values = loadLanes<N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float v = toFloat(values.at[k]);
      values.at[k] = fromFloat<T>(v * Gelu::gate(v));
    }
    storeLanes(y + i, values);
  });
}

template <typename T>
__global__ void __launch_bounds__(flatThreads)
    geluGradKernel(const T *dy, const T *x, T *dx, int64_t n, bool wide) {
  forLanes<lanesOf<T>>(n, wide, [=](int64_t i, auto lanes) {
    constexpr int N = decltype(lanes)::value;
    Lanes<T, N> values = loadLanes<N>(x + i), d = loadLanes<N>(dy + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      d.at[k] =
          fromFloat<T>(toFloat(d.at[k]) * Gelu::slope(toFloat(values.at[k])));
    storeLanes(dx + i, d);
  });
}

} // namespace

cudaError_t swiglu(Storage storage, const void *gate, const void *up, void *y,
                   int64_t n, cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  bool wide = aligned16(gate, up, y);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return launch({flatGrid(n, lanesOf<T>, wide), flatThreads, 0, stream},
                  swigluKernel<T>, static_cast<const T *>(gate),
                  static_cast<const T *>(up), static_cast<T *>(y), n, wide);
  });
}

cudaError_t swigluGrad(Storage storage, const void *dy, const void *gate,
                       const void *up, void *dgate, void *dup, int64_t n,
                       cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  bool wide = aligned16(dy, gate, up, dgate, dup);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return launch({flatGrid(n, lanesOf<T>, wide), flatThreads, 0, stream},
                  swigluGradKernel<T>, static_cast<const T *>(dy),
                  static_cast<const T *>(gate), static_cast<const T *>(up),
                  static_cast<T *>(dgate), static_cast<T *>(dup), n, wide);
  });
}

cudaError_t gelu(Storage storage, const void *x, void *y, int64_t n,
                 cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  bool wide = aligned16(x, y);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return launch({flatGrid(n, lanesOf<T>, wide), flatThreads, 0, stream},
                  geluKernel<T>, static_cast<const T *>(x), static_cast<T *>(y),
                  n, wide);
  });
}

cudaError_t geluGrad(Storage storage, const void *dy, const void *x, void *dx,
                     int64_t n, cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  bool wide = aligned16(dy, x, dx);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return launch({flatGrid(n, lanesOf<T>, wide), flatThreads, 0, stream},
                  geluGradKernel<T>, static_cast<const T *>(dy),
                  static_cast<const T *>(x), static_cast<T *>(dx), n, wide);
  });
}

} // namespace reckon::cuda
