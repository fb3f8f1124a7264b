//===- Kernels.h - launchers of the CUDA kernels --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One function for each kernel of runtime/device/Kernels.h, whose conventions
// hold here too. Addresses are the device's; everything is only enqueued. The
// result tells whether the launch was accepted.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_KERNELS_H
#define RECKON_RUNTIME_CUDA_KERNELS_KERNELS_H

#include "runtime/cuda/Cuda.h"

namespace reckon::cuda {

/// How activations and parameters lie in memory.
enum class Storage : uint8_t { F32, Bf16 };

/// c[n] = a[n] + b[n]; c may be a or b.
cudaError_t add(Storage storage, const void *a, const void *b, void *c,
                int64_t n, cudaStream_t stream);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_KERNELS_H
