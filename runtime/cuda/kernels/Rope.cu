//===- Rope.cu - rotary embeddings ----------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Lanes.cuh"

namespace reckon::cuda {

namespace {

constexpr unsigned maxThreads = 256;

/// One block a row, one thread N pairs of a head: N elements of its first half
/// and the N that they rotate with. All heads of a row share D values of the
/// table, which come from the L1 cache after the first.
template <typename T, int N>
__global__ void __launch_bounds__(maxThreads)
    ropeKernel(const T *x, const float *table, T *y, unsigned heads,
               unsigned half, unsigned s, float sign) {
  int64_t row = blockIdx.x, d = 2 * int64_t{half};
  const float *cosines = table + blockIdx.x % s * d, *sines = cosines + half;
  int64_t first = row * heads * d;
  unsigned each = half / N; // items of a head
  for (unsigned item = threadIdx.x; item < heads * each; item += blockDim.x) {
    unsigned i = item % each * N;
    int64_t at = first + item / each * d + i;
    Lanes<T, N> a = loadLanes<N>(x + at), b = loadLanes<N>(x + at + half);
    Lanes<float, N> c = loadLanes<N>(cosines + i);
    Lanes<float, N> t = loadLanes<N>(sines + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float p = toFloat(a.at[k]), q = toFloat(b.at[k]);
      float cosine = c.at[k], sine = t.at[k] * sign;
      a.at[k] = fromFloat<T>(p * cosine - q * sine);
      b.at[k] = fromFloat<T>(q * cosine + p * sine);
    }
    storeLanes(y + at, a);
    storeLanes(y + at + half, b);
  }
}

template <typename T, int N>
cudaError_t ropeLanes(const RopeSizes &sizes, const T *x, const float *table,
                      T *y, cudaStream_t stream) {
  auto heads = static_cast<unsigned>(sizes.heads);
  auto half = static_cast<unsigned>(sizes.d / 2);
  unsigned items = heads * (half / N);
  unsigned threads = items < maxThreads ? (items + 31) / 32 * 32 : maxThreads;
  return launch({static_cast<unsigned>(sizes.rows), threads, 0, stream},
                ropeKernel<T, N>, x, table, y, heads, half,
                static_cast<unsigned>(sizes.s), sizes.inverse ? -1.0f : 1.0f);
}

} // namespace

cudaError_t rope(Storage storage, const RopeSizes &sizes, const void *x,
                 const float *table, void *y, cudaStream_t stream) {
  if (sizes.rows == 0)
    return cudaSuccess;
  if (sizes.rows > maxGrid || sizes.heads * sizes.d > maxGrid)
    return cudaErrorInvalidValue;
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    auto *from = static_cast<const T *>(x);
    auto *to = static_cast<T *>(y);
    // Halves of the table then lie at multiples of 16 bytes too.
    if (wideRows(sizes.d / 2, from, to, table))
      return ropeLanes<T, lanesOf<T>>(sizes, from, table, to, stream);
    return ropeLanes<T, 1>(sizes, from, table, to, stream);
  });
}

} // namespace reckon::cuda
