//===- AttentionKernels.h - starting our own attention kernels ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_ATTENTIONKERNELS_H
#define RECKON_RUNTIME_CUDA_KERNELS_ATTENTIONKERNELS_H

#include "runtime/cuda/Attention.h"

namespace reckon::cuda {

/// The largest head: four tiles of its rows fill a block's shared memory.
inline constexpr int64_t attentionMaxHead = 256;
/// Queries (or keys) that one thread block owns.
inline constexpr int attentionOwnRows = 64;
/// What a grid and a kernel's 32-bit row numbers hold.
inline constexpr int64_t attentionMaxBlocks = (int64_t(1) << 31) / 64 - 2;

/// Thread blocks of the largest of the launches for this shape.
inline int64_t attentionBlocks(const AttentionShape &shape) {
  int64_t each = (shape.s + attentionOwnRows - 1) / attentionOwnRows;
  return each * shape.batch * shape.hq;
}

/// Bytes of shared memory that a block of either direction needs.
size_t attentionForwardShared(const AttentionShape &shape);
size_t attentionBackwardShared(const AttentionShape &shape);

/// Enqueue one direction. The shape must be within the limits above; nothing is
/// launched if it has no tokens.
cudaError_t attentionForward(const AttentionShape &shape,
                             const AttentionForward &operands,
                             cudaStream_t stream);
cudaError_t attentionBackward(const AttentionShape &shape,
                              const AttentionBackward &operands,
                              cudaStream_t stream);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_ATTENTIONKERNELS_H
