//===- Workspace.h - device memory beside the arena -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_WORKSPACE_H
#define RECKON_RUNTIME_CUDA_WORKSPACE_H

#include "runtime/cuda/Check.h"

#include <cstdint>
#include <map>

namespace reckon::cuda {

/// One block of scratch for each stream of the plan, as large as the most
/// demanding kernel on it: kernels of one stream run one after the other. It
/// grows while kernels are prepared, so they ask for its address when they
/// run; once a graph was captured nothing may be reserved any more.
class Workspace {
public:
  Workspace() = default;
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  ~Workspace() {
    for (auto &[stream, block] : blocks_)
      (void)cudaFree(block.data);
  }

  /// At least `bytes` for kernels on `planStream`. No kernel may be running.
  Status reserve(int planStream, int64_t bytes) {
    Block &block = blocks_[planStream];
    if (bytes <= block.bytes)
      return Status::success();
    RECKON_TRY(RECKON_CUDA(cudaFree(block.data)));
    block = {};
    RECKON_TRY(
        RECKON_CUDA(cudaMalloc(&block.data, static_cast<size_t>(bytes))));
    block.bytes = bytes;
    return Status::success();
  }

  /// 256-byte aligned; null if nothing was reserved.
  void *data(int planStream) const {
    auto found = blocks_.find(planStream);
    return found == blocks_.end() ? nullptr : found->second.data;
  }

  /// Nothing is freed any more: work that uses it may never end.
  void abandon() { blocks_.clear(); }

  /// Over all streams.
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto &[stream, block] : blocks_)
      sum += block.bytes;
    return sum;
  }

private:
  struct Block {
    void *data = nullptr;
    int64_t bytes = 0;
  };
  std::map<int, Block> blocks_;
};

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_WORKSPACE_H
