//===- OwnAttention.cpp - attention by our own kernels --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Check.h"
#include "runtime/cuda/kernels/AttentionKernels.h"

#include <string>

namespace reckon::cuda {

namespace {

/// `start`: attentionForward or attentionBackward.
template <typename Operands>
class Prepared final : public PreparedAttention<Operands> {
public:
  using Start = cudaError_t (*)(const AttentionShape &, const Operands &,
                                cudaStream_t);
  Prepared(const AttentionShape &shape, Start start)
      : shape_(shape), start_(start) {}
  Status run(const Operands &operands, cudaStream_t stream) override {
    return checked(start_(shape_, operands, stream), "the launch of attention");
  }

private:
  AttentionShape shape_;
  Start start_;
};

template <typename Operands>
AttentionResult<Operands> prepare(const AttentionShape &shape,
                                  size_t (*shared)(const AttentionShape &),
                                  typename Prepared<Operands>::Start start) {
  if (shape.d > attentionMaxHead)
    return makeError(ExitCode::Incompatible,
                     "expected attention heads of at most " +
                         std::to_string(attentionMaxHead) +
                         " elements on a CUDA device, got " +
                         std::to_string(shape.d) +
                         "; use more heads of a smaller size");
  if (attentionBlocks(shape) > attentionMaxBlocks)
    return makeError(ExitCode::Incompatible,
                     "expected attention on at most " +
                         std::to_string(attentionMaxBlocks) +
                         " blocks of 64 queries a device, got " +
                         std::to_string(attentionBlocks(shape)) +
                         "; use a smaller micro-batch or split the sequence");
  int device = 0, most = 0;
  RECKON_TRY(RECKON_CUDA(cudaGetDevice(&device)));
  RECKON_TRY(RECKON_CUDA(cudaDeviceGetAttribute(
      &most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device)));
  if (shared(shape) > static_cast<size_t>(most))
    return makeError(ExitCode::Incompatible,
                     "expected a GPU with " + std::to_string(shared(shape)) +
                         " bytes of shared memory a block for attention heads "
                         "of " +
                         std::to_string(shape.d) + " elements, got one with " +
                         std::to_string(most) +
                         "; use more heads of a smaller size or another GPU");
  return std::unique_ptr<PreparedAttention<Operands>>(
      std::make_unique<Prepared<Operands>>(shape, start));
}

} // namespace

AttentionResult<AttentionForward>
OwnAttention::prepareForward(const AttentionShape &shape, int) {
  return prepare<AttentionForward>(shape, attentionForwardShared,
                                   attentionForward);
}

AttentionResult<AttentionBackward>
OwnAttention::prepareBackward(const AttentionShape &shape, int) {
  return prepare<AttentionBackward>(shape, attentionBackwardShared,
                                    attentionBackward);
}

} // namespace reckon::cuda
