//===- Prepare.h - from a checked call to a ready kernel ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_PREPARE_H
#define RECKON_RUNTIME_DEVICE_KERNELS_PREPARE_H

#include "runtime/device/Kernels.h"
#include "runtime/device/kernels/Calls.h"
#include "runtime/device/kernels/CpuMatmul.h"
#include "runtime/device/kernels/Parallel.h"
#include "runtime/device/kernels/RowKernels.h"
#include "runtime/device/kernels/Workspace.h"

#include <memory>
#include <type_traits>

namespace reckon::device {

/// What the CPU device lends to its kernels.
struct CpuContext {
  const RowKernels &rows;
  Parallel parallel;
  Workspace &workspace;
  MatmulCache &matmuls;
};

using Prepared = Result<std::unique_ptr<PreparedKernel>>;

/// A kernel that is a function of the operands' addresses.
template <typename Body> class PreparedBody final : public PreparedKernel {
public:
  PreparedBody(size_t operands, Body body)
      : operands_(operands), body_(std::move(body)) {}
  Status run(std::span<void *const> pointers) override {
    RECKON_CHECK(pointers.size() == operands_);
    return body_(pointers.data());
  }

private:
  size_t operands_;
  Body body_;
};

/// Body: Status(void *const *operands), inputs first.
template <typename Body>
Prepared makePrepared(const KernelCall &call, Body body) {
  return std::unique_ptr<PreparedKernel>(std::make_unique<PreparedBody<Body>>(
      call.inputs.size() + call.outputs.size(), std::move(body)));
}

/// Calls body with a value of the storage type: float, or Bf16.
template <typename Body> Prepared withStorage(DType dtype, Body body) {
  return dtype == DType::BF16 ? body(Bf16{}) : body(float{});
}
/// The kernels for operands stored as T.
template <typename T>
const StorageKernels<T> &kernelsOf(const RowKernels &rows) {
  if constexpr (std::is_same_v<T, Bf16>)
    return rows.bf16;
  else
    return rows.f32;
}

template <typename T> T *as(void *p) { return static_cast<T *>(p); }
inline float *floats(void *p) { return static_cast<float *>(p); }
inline double *doubles(void *p) { return static_cast<double *>(p); }
inline const int32_t *tokens(void *p) { return static_cast<int32_t *>(p); }

// One function for each kernel, in PrepareRows.cpp, PrepareModel.cpp,
// PrepareLoss.cpp, PrepareFp8.cpp and PrepareLayerNorm.cpp.
Prepared prepareFillZero(const CpuContext &, const KernelCall &);
Prepared prepareCopy(const CpuContext &, const KernelCall &);
Prepared prepareAdd(const CpuContext &, const KernelCall &);
Prepared prepareEmbedding(const CpuContext &, const KernelCall &);
Prepared prepareEmbeddingGrad(const CpuContext &, const KernelCall &);
Prepared prepareRmsNorm(const CpuContext &, const KernelCall &);
Prepared prepareRmsNormGradInput(const CpuContext &, const KernelCall &);
Prepared prepareRmsNormGradWeight(const CpuContext &, const KernelCall &);
Prepared prepareLinear(const CpuContext &, const KernelCall &);
Prepared prepareLinearGradInput(const CpuContext &, const KernelCall &);
Prepared prepareLinearGradWeight(const CpuContext &, const KernelCall &);
Prepared prepareRope(const CpuContext &, const KernelCall &);
Prepared prepareAttention(const CpuContext &, const KernelCall &);
Prepared prepareAttentionGrad(const CpuContext &, const KernelCall &);
Prepared prepareSwiglu(const CpuContext &, const KernelCall &);
Prepared prepareSwigluGrad(const CpuContext &, const KernelCall &);
Prepared prepareCrossEntropyMax(const CpuContext &, const KernelCall &);
Prepared prepareCrossEntropySum(const CpuContext &, const KernelCall &);
Prepared prepareCrossEntropyLoss(const CpuContext &, const KernelCall &);
Prepared prepareCrossEntropyGrad(const CpuContext &, const KernelCall &);
Prepared prepareSumSquares(const CpuContext &, const KernelCall &);
Prepared prepareClipFactor(const CpuContext &, const KernelCall &);
Prepared prepareAdamw(const CpuContext &, const KernelCall &);
Prepared prepareAmax(const CpuContext &, const KernelCall &);
Prepared prepareCastFp8(const CpuContext &, const KernelCall &);
Prepared prepareLinearFp8(const CpuContext &, const KernelCall &);
Prepared prepareLayerNorm(const CpuContext &, const KernelCall &);
Prepared prepareLayerNormGradInput(const CpuContext &, const KernelCall &);
Prepared prepareLayerNormGradWeight(const CpuContext &, const KernelCall &);
Prepared prepareGelu(const CpuContext &, const KernelCall &);
Prepared prepareGeluGrad(const CpuContext &, const KernelCall &);

/// The function for a kernel, or null for a number that names none.
using PrepareFunction = Prepared (*)(const CpuContext &, const KernelCall &);
PrepareFunction prepareFunction(Kernel kernel);

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_PREPARE_H
