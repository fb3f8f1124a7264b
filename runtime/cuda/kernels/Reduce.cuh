//===- Reduce.cuh - sums and maxima over a block --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_REDUCE_CUH
#define RECKON_RUNTIME_CUDA_KERNELS_REDUCE_CUH

#include "runtime/cuda/Cuda.h"

namespace reckon::cuda {

/// Warps of the largest block: entries of shared memory that a reduction uses.
inline constexpr int reduceEntries = 32;

/// op over the values of all threads of a block of whole warps, in an order
/// that depends on the block's size alone. Thread 0 gets the result. Every
/// thread must call it; `entries` are reduceEntries values of shared memory,
/// which may be used again after a barrier.
template <typename T, typename Op>
__device__ T reduceBlock(T value, T identity, T *entries, Op op) {
  constexpr unsigned all = 0xffffffffu;
  int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2)
    value = op(value, __shfl_xor_sync(all, value, lanes));
  if (thread % 32 == 0)
    entries[thread / 32] = value;
  __syncthreads();
  if (thread < 32) {
    value =
        thread < static_cast<int>(blockDim.x) / 32 ? entries[thread] : identity;
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
      value = op(value, __shfl_xor_sync(all, value, lanes));
  }
  return value;
}

template <typename T> __device__ T sumBlock(T value, T *entries) {
  return reduceBlock(value, T(0), entries, [](T a, T b) { return a + b; });
}

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_REDUCE_CUH
