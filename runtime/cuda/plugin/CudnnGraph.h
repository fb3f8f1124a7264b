//===- CudnnGraph.h - one direction of attention as a graph of cuDNN ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Hides cudnn-frontend, whose headers take a minute to compile.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_CUDNNGRAPH_H
#define RECKON_RUNTIME_CUDA_PLUGIN_CUDNNGRAPH_H

#include "runtime/cuda/plugin/Slices.h"

#include <memory>
#include <string>

struct cudnnContext;

namespace reckon::cuda {

/// bf16, causal, GQA, in equal bits on every run: the gradient of q is summed
/// in a fixed order, not by atomics.
class CudnnGraph {
public:
  enum class Direction { Forward, Backward };

  CudnnGraph(Direction direction, const AttentionShape &shape,
             const AttentionSlice &slice);
  ~CudnnGraph();

  /// Finds an engine for the chip of `handle`, or, where it is null, for one
  /// that is not here: its properties as cuDNN writes them in JSON, and its
  /// compute capability, 90 for 9.0. Incompatible with cuDNN's words if there
  /// is none.
  Status choose(cudnnContext *handle, const std::string &properties = "",
                int capability = 0);
  /// Compiles the engine. Only after choose(), with a GPU.
  Status build();
  /// Only after build().
  int64_t workspaceBytes() const;

  /// Enqueues on the handle's stream. Addresses are those of the slice's first
  /// elements.
  Status forward(cudnnContext *handle, const AttentionForward &operands,
                 void *workspace);
  Status backward(cudnnContext *handle, const AttentionBackward &operands,
                  void *workspace);

private:
  struct State;
  std::unique_ptr<State> state_;
};

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGIN_CUDNNGRAPH_H
