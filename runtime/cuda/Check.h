//===- Check.h - CUDA's errors as Reckon's --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_CHECK_H
#define RECKON_RUNTIME_CUDA_CHECK_H

#include "runtime/base/Status.h"
#include "runtime/cuda/Cuda.h"

#include <string>

namespace reckon::cuda {

/// The error of a call, with what was called. Out of memory says so and what
/// to do; everything else is the machine's.
inline Error cudaFailure(cudaError_t error, const char *call) {
  std::string text = std::string("expected ") + call + " to succeed, got " +
                     cudaGetErrorName(error) + " (" +
                     cudaGetErrorString(error) + ")";
  if (error == cudaErrorMemoryAllocation)
    text += "; free the GPU's memory or raise cluster.memory_reserve_gib and "
            "compile again";
  else
    text += "; see `reckon doctor` and the GPU's log";
  return makeError(ExitCode::Environment, std::move(text));
}

/// For statements such as `return checked(cudaX(...), "cudaX")`.
inline Status checked(cudaError_t error, const char *call) {
  return error == cudaSuccess ? Status::success()
                              : Status(cudaFailure(error, call));
}

} // namespace reckon::cuda

/// The Status of a CUDA call, named by its own text.
#define RECKON_CUDA(call) ::reckon::cuda::checked((call), #call)

#endif // RECKON_RUNTIME_CUDA_CHECK_H
