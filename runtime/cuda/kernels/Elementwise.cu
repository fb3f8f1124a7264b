//===- Elementwise.cu - sums, casts and random numbers --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Lanes.cuh"

namespace reckon::cuda {

namespace {

template <typename T>
__global__ void __launch_bounds__(flatThreads)
    addKernel(const T *a, const T *b, T *c, int64_t n, bool wide) {
  forLanes<lanesOf<T>>(n, wide, [=](int64_t i, auto lanes) {
    constexpr int N = decltype(lanes)::value;
    Lanes<T, N> x = loadLanes<N>(a + i), y = loadLanes<N>(b + i);
#pragma unroll
    for (int k = 0; k < N; ++k)
      x.at[k] = fromFloat<T>(toFloat(x.at[k]) + toFloat(y.at[k]));
    storeLanes(c + i, x);
  });
}

template <typename From, typename To>
__global__ void __launch_bounds__(flatThreads)
    castKernel(const From *x, To *y, int64_t n, bool wide) {
  forLanes<lanesOf<Bf16>>(n, wide, [=](int64_t i, auto lanes) {
    constexpr int N = decltype(lanes)::value;
    Lanes<From, N> from = loadLanes<N>(x + i);
    Lanes<To, N> to;
#pragma unroll
    for (int k = 0; k < N; ++k)
      to.at[k] = fromFloat<To>(toFloat(from.at[k]));
    storeLanes(y + i, to);
  });
}

template <typename T>
__global__ void __launch_bounds__(flatThreads)
    fillNormalKernel(T *x, device::NormalStream stream, int64_t first,
                     int64_t n, bool wide) {
  forLanes<lanesOf<T>>(n, wide, [=](int64_t i, auto lanes) {
    constexpr int N = decltype(lanes)::value;
    Lanes<T, N> values;
#pragma unroll
    for (int k = 0; k < N; ++k)
      values.at[k] = fromFloat<T>(stream.at(first + i + k));
    storeLanes(x + i, values);
  });
}

template <typename From, typename To>
cudaError_t cast(const From *x, To *y, int64_t n, cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  bool wide = aligned16(x, y);
  return launch({flatGrid(n, lanesOf<Bf16>, wide), flatThreads, 0, stream},
                castKernel<From, To>, x, y, n, wide);
}

} // namespace

cudaError_t fillZero(void *x, int64_t bytes, cudaStream_t stream) {
  if (bytes == 0)
    return cudaSuccess;
  return cudaMemsetAsync(x, 0, static_cast<size_t>(bytes), stream);
}

cudaError_t copy(const void *x, void *y, int64_t bytes, cudaStream_t stream) {
  if (bytes == 0)
    return cudaSuccess;
  return cudaMemcpyAsync(y, x, static_cast<size_t>(bytes),
                         cudaMemcpyDeviceToDevice, stream);
}

cudaError_t add(Storage storage, const void *a, const void *b, void *c,
                int64_t n, cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  bool wide = aligned16(a, b, c);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return launch({flatGrid(n, lanesOf<T>, wide), flatThreads, 0, stream},
                  addKernel<T>, static_cast<const T *>(a),
                  static_cast<const T *>(b), static_cast<T *>(c), n, wide);
  });
}

cudaError_t widen(const void *x, float *y, int64_t n, cudaStream_t stream) {
  return cast(static_cast<const Bf16 *>(x), y, n, stream);
}

cudaError_t narrow(const float *x, void *y, int64_t n, cudaStream_t stream) {
  return cast(x, static_cast<Bf16 *>(y), n, stream);
}

cudaError_t fillNormal(Storage storage, void *x,
                       const device::NormalStream &normal, int64_t first,
                       int64_t n, cudaStream_t stream) {
  if (n == 0)
    return cudaSuccess;
  bool wide = aligned16(x);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return launch({flatGrid(n, lanesOf<T>, wide), flatThreads, 0, stream},
                  fillNormalKernel<T>, static_cast<T *>(x), normal, first, n,
                  wide);
  });
}

} // namespace reckon::cuda
