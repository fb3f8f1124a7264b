//===- Blocks.h - a kernel's blocks, run by fibres ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_BLOCKS_H
#define RECKON_RUNTIME_CUDA_EMULATED_BLOCKS_H

#include "runtime/cuda/emulated/CudaRuntime.h"

#include <functional>
#include <optional>
#include <string>

namespace reckon::cuda::emulated {

/// A kernel as it was launched.
struct KernelLaunch {
  dim3 grid;
  dim3 block;
  size_t shared = 0;
  std::function<void()> thread;
};

/// Runs all threads of all blocks, one at a time; with a seed blocks and
/// threads take turns in an order of its choice. Returns what is wrong when
/// threads wait for each other in ways that a device does not allow; the
/// threads that are left then never go on.
std::string runKernel(const KernelLaunch &launch, std::optional<uint64_t> seed);

} // namespace reckon::cuda::emulated

#endif // RECKON_RUNTIME_CUDA_EMULATED_BLOCKS_H
