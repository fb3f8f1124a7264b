//===- Fp8Kernels.h - starting the fp8 kernels ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Launchers of amax and cast_fp8; products of codes are matrix products. The
// operands are those of runtime/device/Kernels.h, at device addresses. Matrices
// of codes are aligned to 16 bytes, as everything in an arena is. Accesses to x
// are of 16 bytes where its address and width allow. Results are the CPU
// device's, bit for bit: a maximum has no order, and a code one rounding.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_FP8KERNELS_H
#define RECKON_RUNTIME_CUDA_KERNELS_FP8KERNELS_H

#include "runtime/cuda/Cuda.h"
#include "runtime/device/kernels/Calls.h"

namespace reckon::cuda {

/// x[n] in bf16 -> amax[1].
cudaError_t amax(const device::AmaxCall &call, const void *x, float *amax,
                 cudaStream_t stream);

/// x[rows, columns] in bf16, amax[1] -> scale[1] and the codes that the call
/// makes; the others are null.
cudaError_t castFp8(const device::CastFp8Call &call, const void *x,
                    const float *amax, float *scale, void *straight,
                    void *transposed, cudaStream_t stream);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_FP8KERNELS_H
