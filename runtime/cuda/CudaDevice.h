//===- CudaDevice.h - one GPU, or its emulation ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_CUDADEVICE_H
#define RECKON_RUNTIME_CUDA_CUDADEVICE_H

#include "runtime/cuda/Cuda.h"
#include "runtime/device/StreamDevice.h"

#include <memory>

namespace reckon::cuda {

/// Where an arena comes from: ncclMemAlloc when NCCL is to register it.
struct ArenaAllocator {
  Status (*allocate)(void **memory, size_t bytes) = nullptr;
  Status (*release)(void *memory) = nullptr;
};

struct CudaDeviceOptions {
  int device = 0;       ///< its number among those that this process sees
  ArenaAllocator arena; ///< cudaMalloc when empty
};

/// A device on GPU `options.device`. Environment when it cannot be used.
Result<std::unique_ptr<device::StreamDevice>>
makeCudaDevice(const CudaDeviceOptions &options);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_CUDADEVICE_H
