//===- Lanes.cuh - what one thread handles at a time ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A kernel is written once for N elements a thread. N = lanesOf<T> makes every
// access 16 bytes wide; N = 1 is for operands whose address or row length does
// not allow that, and for what is left at the end of an array.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_LANES_CUH
#define RECKON_RUNTIME_CUDA_KERNELS_LANES_CUH

#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Types.cuh"

#include <type_traits>

namespace reckon::cuda {

/// N elements in a row of memory. Eight f32 beside eight bf16 are two accesses
/// of 16 bytes.
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Lanes {
  T at[N];
};

template <int N, typename T>
__device__ __forceinline__ Lanes<T, N> loadLanes(const T *from) {
  return *reinterpret_cast<const Lanes<T, N> *>(from);
}
template <int N, typename T>
__device__ __forceinline__ void storeLanes(T *to, const Lanes<T, N> &lanes) {
  *reinterpret_cast<Lanes<T, N> *>(to) = lanes;
}

/// Calls body(i, n) for parts of [0, count) that this thread owns: n is an
/// integral constant, N for whole groups if `wide`, else 1. The loop strides
/// over the grid.
template <int N, typename Body>
__device__ __forceinline__ void forLanes(int64_t count, bool wide, Body body) {
  int64_t self = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  int64_t step = int64_t{gridDim.x} * blockDim.x;
  int64_t groups = wide ? count / N : 0;
#pragma unroll 2
  for (int64_t i = self; i < groups; i += step)
    body(i * N, std::integral_constant<int, N>{});
  for (int64_t i = groups * N + self; i < count; i += step)
    body(i, std::integral_constant<int, 1>{});
}

/// Threads of an elementwise block.
inline constexpr unsigned flatThreads = 256;

/// The grid of forLanes<N>(count, wide): enough blocks to fill the largest chip
/// twice over, no more than there is work for.
inline unsigned flatGrid(int64_t count, int n, bool wide) {
  int64_t items = wide ? (count + n - 1) / n : count;
  int64_t blocks = (items + flatThreads - 1) / flatThreads;
  return static_cast<unsigned>(blocks < 4096 ? blocks : 4096);
}

/// Whether rows of `columns` elements that start at these addresses all lie at
/// multiples of 16 bytes.
template <typename T, typename... P>
bool wideRows(int64_t columns, const T *first, const P *...others) {
  return columns % lanesOf<T> == 0 && aligned16(first, others...);
}

/// Calls body with a null pointer to the storage type.
template <typename Body> cudaError_t withStorage(Storage storage, Body body) {
  return storage == Storage::Bf16 ? body(static_cast<Bf16 *>(nullptr))
                                  : body(static_cast<float *>(nullptr));
}

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_LANES_CUH
