//===- Prepare.h - from a plan's kernel call to a launch ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PREPARE_H
#define RECKON_RUNTIME_CUDA_PREPARE_H

#include "runtime/cuda/Check.h"
#include "runtime/cuda/CudaContext.h"
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/device/Kernels.h"
#include "runtime/device/kernels/Calls.h"

#include <memory>
#include <string>
#include <utility>

namespace reckon::cuda {

using device::Kernel;
using device::KernelCall;
using Prepared = Result<std::unique_ptr<device::PreparedKernel>>;

/// Checks a call and gets it ready; what it returns enqueues on the CUDA
/// stream of call.stream.
using PrepareFunction = Prepared (*)(const CudaContext &, const KernelCall &);
/// The function for a kernel, or null for a number that names none.
PrepareFunction prepareFunction(Kernel kernel);

inline Storage storageOf(device::DType dtype) {
  return dtype == device::DType::BF16 ? Storage::Bf16 : Storage::F32;
}

/// A launch that is a function of the operands' addresses.
template <typename Body>
class PreparedLaunch final : public device::PreparedKernel {
public:
  PreparedLaunch(Kernel kernel, size_t operands, cudaStream_t stream, Body body)
      : kernel_(kernel), operands_(operands), stream_(stream),
        body_(std::move(body)) {}

  Status run(std::span<void *const> pointers) override {
    RECKON_CHECK(pointers.size() == operands_);
    return status(body_(pointers.data(), stream_));
  }

private:
  Status status(Status status) const { return status; }
  Status status(cudaError_t error) const {
    if (error == cudaSuccess)
      return Status::success();
    std::string what =
        "the launch of " + std::string(device::kernelSignature(kernel_)->name);
    return cudaFailure(error, what.c_str());
  }

  Kernel kernel_;
  size_t operands_;
  cudaStream_t stream_;
  Body body_;
};

/// Body: cudaError_t or Status (void *const *operands, cudaStream_t stream);
/// operands are the inputs, then the outputs.
template <typename Body>
Prepared makePrepared(const CudaContext &ctx, Kernel kernel,
                      const KernelCall &call, Body body) {
  Result<cudaStream_t> stream = ctx.stream(call.stream);
  if (!stream)
    return stream.error();
  return std::unique_ptr<device::PreparedKernel>(
      std::make_unique<PreparedLaunch<Body>>(
          kernel, call.inputs.size() + call.outputs.size(), *stream,
          std::move(body)));
}

template <typename T> T *as(void *p) { return static_cast<T *>(p); }

// PrepareRows.cpp
Prepared prepareFillZero(const CudaContext &, const KernelCall &);
Prepared prepareCopy(const CudaContext &, const KernelCall &);
Prepared prepareAdd(const CudaContext &, const KernelCall &);
Prepared prepareEmbedding(const CudaContext &, const KernelCall &);
Prepared prepareEmbeddingGrad(const CudaContext &, const KernelCall &);
Prepared prepareRmsNorm(const CudaContext &, const KernelCall &);
Prepared prepareRmsNormGradInput(const CudaContext &, const KernelCall &);
Prepared prepareRmsNormGradWeight(const CudaContext &, const KernelCall &);
Prepared prepareRope(const CudaContext &, const KernelCall &);
Prepared prepareSwiglu(const CudaContext &, const KernelCall &);
Prepared prepareSwigluGrad(const CudaContext &, const KernelCall &);
// PrepareLayerNorm.cpp
Prepared prepareLayerNorm(const CudaContext &, const KernelCall &);
Prepared prepareLayerNormGradInput(const CudaContext &, const KernelCall &);
Prepared prepareLayerNormGradWeight(const CudaContext &, const KernelCall &);
Prepared prepareGelu(const CudaContext &, const KernelCall &);
Prepared prepareGeluGrad(const CudaContext &, const KernelCall &);
// PrepareModel.cpp
Prepared prepareLinear(const CudaContext &, const KernelCall &);
Prepared prepareLinearGradInput(const CudaContext &, const KernelCall &);
Prepared prepareLinearGradWeight(const CudaContext &, const KernelCall &);
// PrepareAttention.cpp
Prepared prepareAttention(const CudaContext &, const KernelCall &);
Prepared prepareAttentionGrad(const CudaContext &, const KernelCall &);
// PrepareLoss.cpp
Prepared prepareCrossEntropyMax(const CudaContext &, const KernelCall &);
Prepared prepareCrossEntropySum(const CudaContext &, const KernelCall &);
Prepared prepareCrossEntropyLoss(const CudaContext &, const KernelCall &);
Prepared prepareCrossEntropyGrad(const CudaContext &, const KernelCall &);
Prepared prepareSumSquares(const CudaContext &, const KernelCall &);
Prepared prepareClipFactor(const CudaContext &, const KernelCall &);
Prepared prepareAdamw(const CudaContext &, const KernelCall &);
// PrepareFp8.cpp
Prepared prepareAmax(const CudaContext &, const KernelCall &);
Prepared prepareCastFp8(const CudaContext &, const KernelCall &);
Prepared prepareLinearFp8(const CudaContext &, const KernelCall &);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PREPARE_H
