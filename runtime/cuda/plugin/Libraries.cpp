//===- Libraries.cpp - who multiplies and attends on a GPU ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Libraries.h"
#include "runtime/cuda/plugin/CublasMatmul.h"
#include "runtime/cuda/plugin/CudnnAttention.h"
#include "runtime/cuda/plugin/Versions.h"

namespace reckon::cuda {

Result<Libraries> makeLibraries(Workspace &workspace) {
  Libraries made;
  auto matmul = makeCublasMatmul(workspace);
  if (!matmul)
    return matmul.error();
  made.matmul = std::move(*matmul);
  made.names = "cuBLASLt " + cublasVersion();
  if (std::string missing = cudnnMissing(); !missing.empty()) {
    made.attention = std::make_unique<OwnAttention>();
    made.names += ", own attention: " + missing;
    return made;
  }
  auto attention = makeCudnnAttention(workspace);
  if (!attention)
    return attention.error();
  made.attention = std::move(*attention);
  made.names += ", cuDNN " + cudnnVersion();
  return made;
}

} // namespace reckon::cuda
