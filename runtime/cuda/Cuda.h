//===- Cuda.h - the CUDA runtime, or its emulation ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Every source of this folder compiles twice: with nvcc against the toolkit,
// and with RECKON_CUDA_EMULATED against emulated/, where streams are queues on
// the host and a kernel's threads are fibres. This header alone knows which.
//
// What kernels may use beside C++: what emulated/DeviceCode.h declares. A
// kernel is started by launch(), its dynamic shared memory is declared by
// RECKON_SHARED.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_CUDA_H
#define RECKON_RUNTIME_CUDA_CUDA_H

#ifdef RECKON_CUDA_EMULATED
#include "runtime/cuda/emulated/CudaRuntime.h"
#include "runtime/cuda/emulated/DeviceCode.h"
#else
#include <cuda_runtime.h>
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <tuple>

#ifdef RECKON_CUDA_EMULATED
/// The kernel's dynamic shared memory as an array of TYPE, 16-byte aligned.
/// At most once in a kernel.
#define RECKON_SHARED(TYPE, NAME)                                              \
  TYPE *NAME =                                                                 \
      static_cast<TYPE *>(::reckon::cuda::emulated::dynamicSharedMemory())
#else
#define RECKON_SHARED(TYPE, NAME)                                              \
  extern __shared__ __align__(16) unsigned char reckonSharedMemory[];          \
  TYPE *NAME = reinterpret_cast<TYPE *>(reckonSharedMemory)
#endif

namespace reckon::cuda {

#ifdef RECKON_CUDA_EMULATED
inline constexpr const char *deviceKind = "cuda-emulated";
#else
inline constexpr const char *deviceKind = "cuda";
#endif

/// Between two looks at whether the device is ready: a GPU works by itself, its
/// emulation waits for others here.
inline void relax() {
#ifdef RECKON_CUDA_EMULATED
  emulated::relax();
#else
  std::this_thread::sleep_for(std::chrono::microseconds(10));
#endif
}

/// How a kernel is started.
struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared = 0; ///< bytes of dynamic shared memory
  cudaStream_t stream = nullptr;
};

/// What a kernel may have without asking for more.
inline constexpr size_t plainSharedBytes = 48 << 10;

#if defined(RECKON_CUDA_EMULATED)
template <typename... P, typename... A>
cudaError_t launch(const LaunchShape &shape, void (*kernel)(P...), A... args) {
  std::tuple<P...> copies(static_cast<P>(args)...);
  return emulated::enqueueKernel(
      shape.grid, shape.block, shape.shared, shape.stream,
      [kernel, copies] { std::apply(kernel, copies); });
}
#elif defined(__CUDACC__)
/// Starts kernel(args...). Nothing runs for an empty grid.
template <typename... P, typename... A>
cudaError_t launch(const LaunchShape &shape, void (*kernel)(P...), A... args) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0)
    return cudaSuccess;
  if (shape.shared > plainSharedBytes)
    if (cudaError_t error =
            cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shape.shared)))
      return error;
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared;
  config.stream = shape.stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
}
#endif

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_CUDA_H
