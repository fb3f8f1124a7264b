//===- CudnnAttention.h - bf16 attention by cuDNN -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_CUDNNATTENTION_H
#define RECKON_RUNTIME_CUDA_PLUGIN_CUDNNATTENTION_H

#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Workspace.h"

#include <memory>
#include <string>

namespace reckon::cuda {

/// Scratch that the gradient may take of a stream before a call is divided. It
/// comes out of cluster.memory_reserve_gib.
inline constexpr int64_t attentionWorkspaceBytes = 256 << 20;

/// Attention by cuDNN for bf16 heads of a multiple of 8 and at most 256
/// elements and sequences of two tokens or more, by our own kernel for the
/// rest. The workspace outlives it. Environment if the library does not start.
Result<std::unique_ptr<Attention>> makeCudnnAttention(Workspace &workspace);

/// Why attention is computed by our own kernel alone; empty when cuDNN is
/// there.
std::string cudnnMissing();

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGIN_CUDNNATTENTION_H
