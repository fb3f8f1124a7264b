//===- Libraries.h - who multiplies and attends ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_LIBRARIES_H
#define RECKON_RUNTIME_CUDA_LIBRARIES_H

#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Matmul.h"
#include "runtime/cuda/Workspace.h"

#include <memory>
#include <string>

namespace reckon::cuda {

/// What the device does not compute with kernels of its own.
struct Libraries {
  std::unique_ptr<Matmul> matmul;
  std::unique_ptr<Attention> attention;
  std::string names; ///< with versions, for logs
};

/// cuBLASLt and cuDNN in the plugin, reference code under emulation. The
/// workspace outlives them.
Result<Libraries> makeLibraries(Workspace &workspace);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_LIBRARIES_H
