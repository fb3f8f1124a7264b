//===- CublasMatmul.h - matrix products by cuBLASLt -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_CUBLASMATMUL_H
#define RECKON_RUNTIME_CUDA_PLUGIN_CUBLASMATMUL_H

#include "runtime/cuda/Matmul.h"
#include "runtime/cuda/Workspace.h"

#include <memory>

namespace reckon::cuda {

/// Scratch that a stream with matrix products reserves: NVIDIA's
/// recommendation for Hopper and later, and enough for the split of a small
/// product over a whole chip.
inline constexpr int64_t cublasWorkspaceBytes = 32 << 20;

/// cuBLASLt on the current device. The workspace outlives it. Environment if
/// the library does not start.
Result<std::unique_ptr<Matmul>> makeCublasMatmul(Workspace &workspace);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGIN_CUBLASMATMUL_H
