//===- PackFour.cuh - four f32 rounded to bf16 ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_PACKFOUR_CUH
#define RECKON_RUNTIME_CUDA_KERNELS_PACKFOUR_CUH

#include "runtime/cuda/kernels/Types.cuh"

namespace reckon::cuda {

/// Eight bytes to store: four values rounded to bf16, the first lowest.
__device__ inline uint2 packFour(const float (&x)[4]) {
  auto two = [](float low, float high) {
    return fromFloat<Bf16>(low).bits |
           static_cast<unsigned>(fromFloat<Bf16>(high).bits) << 16;
  };
  return uint2{two(x[0], x[1]), two(x[2], x[3])};
}

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_PACKFOUR_CUH
