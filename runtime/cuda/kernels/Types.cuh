//===- Types.cuh - element types and 16-byte accesses of kernels ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_TYPES_CUH
#define RECKON_RUNTIME_CUDA_KERNELS_TYPES_CUH

#include "runtime/cuda/Cuda.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#endif

namespace reckon::cuda {

/// A bfloat16 number by its bits.
struct Bf16 {
  uint16_t bits;
};

__device__ inline float toFloat(float x) { return x; }
__device__ inline float toFloat(Bf16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}

template <typename T> __device__ T fromFloat(float x);
template <> __device__ inline float fromFloat<float>(float x) { return x; }
/// To nearest even; NaN stays NaN.
template <> __device__ inline Bf16 fromFloat<Bf16>(float x) {
#ifdef __CUDA_ARCH__
  return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
#else
  unsigned bits = __float_as_uint(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
#endif
}

/// Elements of T in one 16-byte access.
template <typename T> inline constexpr int lanesOf = 16 / sizeof(T);

/// Sixteen bytes of T.
template <typename T> struct alignas(16) Pack {
  T at[lanesOf<T>];
};

template <typename T> __device__ Pack<T> loadPack(const T *from) {
  return *reinterpret_cast<const Pack<T> *>(from);
}
template <typename T> __device__ void storePack(T *to, const Pack<T> &pack) {
  *reinterpret_cast<Pack<T> *>(to) = pack;
}

/// Whether all of these addresses allow 16-byte accesses. For launchers.
template <typename... P> bool aligned16(const P *...pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_TYPES_CUH
