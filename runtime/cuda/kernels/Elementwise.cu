//===- Elementwise.cu - kernels that treat every element alike ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Types.cuh"

namespace reckon::cuda {

namespace {

constexpr unsigned blockThreads = 256;

/// Blocks of a grid-stride loop over `items`: enough to fill the largest chip
/// several times over, no more than there is work for.
unsigned gridFor(int64_t items) {
  int64_t blocks = (items + blockThreads - 1) / blockThreads;
  return static_cast<unsigned>(blocks < 4096 ? blocks : 4096);
}

template <typename T>
__global__ void addPacks(const T *a, const T *b, T *c, int64_t packs) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs;
       i += step) {
    Pack<T> x = loadPack(a + i * lanesOf<T>);
    Pack<T> y = loadPack(b + i * lanesOf<T>);
    for (int k = 0; k < lanesOf<T>; ++k)
      x.at[k] = fromFloat<T>(toFloat(x.at[k]) + toFloat(y.at[k]));
    storePack(c + i * lanesOf<T>, x);
  }
}

template <typename T>
__global__ void addElements(const T *a, const T *b, T *c, int64_t n) {
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += step)
    c[i] = fromFloat<T>(toFloat(a[i]) + toFloat(b[i]));
}

template <typename T>
cudaError_t addTyped(const T *a, const T *b, T *c, int64_t n,
                     cudaStream_t stream) {
  int64_t packs = aligned16(a, b, c) ? n / lanesOf<T> : 0;
  if (packs > 0)
    if (cudaError_t error = launch({gridFor(packs), blockThreads, 0, stream},
                                   addPacks<T>, a, b, c, packs);
        error != cudaSuccess)
      return error;
  int64_t done = packs * lanesOf<T>;
  if (done == n)
    return cudaSuccess;
  return launch({gridFor(n - done), blockThreads, 0, stream}, addElements<T>,
                a + done, b + done, c + done, n - done);
}

} // namespace

cudaError_t add(Storage storage, const void *a, const void *b, void *c,
                int64_t n, cudaStream_t stream) {
  if (storage == Storage::Bf16)
    return addTyped(static_cast<const Bf16 *>(a), static_cast<const Bf16 *>(b),
                    static_cast<Bf16 *>(c), n, stream);
  return addTyped(static_cast<const float *>(a), static_cast<const float *>(b),
                  static_cast<float *>(c), n, stream);
}

} // namespace reckon::cuda
