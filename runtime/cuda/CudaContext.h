//===- CudaContext.h - what the CUDA device lends to its kernels ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_CUDACONTEXT_H
#define RECKON_RUNTIME_CUDA_CUDACONTEXT_H

#include "runtime/base/Status.h"
#include "runtime/cuda/Cuda.h"

#include <functional>

namespace reckon::cuda {

class Attention;
class Matmul;
class Workspace;

/// All of it outlives the kernels.
struct CudaContext {
  /// The CUDA stream of a stream of the plan, made at its first use.
  std::function<Result<cudaStream_t>(int planStream)> stream;
  Matmul &matmul;
  Attention &attention;
  Workspace &workspace;
};

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_CUDACONTEXT_H
