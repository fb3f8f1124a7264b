//===- LossKernels.h - starting the loss and optimizer kernels ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Launchers of cross entropy, the gradient's norm and AdamW. Pointers are
// device addresses aligned to their element; the operands are those of
// runtime/device/Kernels.h. Accesses are of 16 bytes wherever the addresses
// allow. Empty calls launch nothing. Sums that cross threads have an order that
// depends on sizes alone.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_LOSSKERNELS_H
#define RECKON_RUNTIME_CUDA_KERNELS_LOSSKERNELS_H

#include "runtime/cuda/Cuda.h"
#include "runtime/device/kernels/Calls.h"

namespace reckon::cuda {

/// Calls with more rows than this (the grid's limit) are invalid.
inline constexpr int64_t maxLossRows = 0x7fffffff;

/// logits[rows, v] -> max[rows].
cudaError_t crossEntropyMax(const device::CrossEntropyCall &call,
                            const void *logits, float *max,
                            cudaStream_t stream);
/// logits[rows, v], targets[rows], max[rows] -> sums[2, rows].
cudaError_t crossEntropySum(const device::CrossEntropyCall &call,
                            const void *logits, const int32_t *targets,
                            const float *max, float *sums, cudaStream_t stream);
/// sums[2, rows], max[rows] -> lse[rows]; the owner adds to metrics[0].
cudaError_t crossEntropyLoss(const device::CrossEntropyLossCall &call,
                             const float *sums, const float *max, float *lse,
                             double *metrics, cudaStream_t stream);
/// logits[rows, v], targets[rows], lse[rows] -> dlogits[rows, v], which may be
/// the logits.
cudaError_t crossEntropyGrad(const device::CrossEntropyCall &call,
                             const void *logits, const int32_t *targets,
                             const float *lse, void *dlogits,
                             cudaStream_t stream);

/// Partial sums that sumSquares needs scratch for.
int64_t sumSquaresParts(int64_t n);
/// The owner adds the sum of x[n]^2 to metrics[1], in f64. `parts`:
/// sumSquaresParts(n) values of scratch.
cudaError_t sumSquares(const device::SumSquaresCall &call, const float *x,
                       double *parts, double *metrics, cudaStream_t stream);
/// metrics[1] -> metrics[3], metrics[2].
cudaError_t clipFactor(const device::ClipFactorCall &call, double *metrics,
                       cudaStream_t stream);

/// Operands of adamw; param is null unless the call casts.
struct AdamwOperands {
  const float *grad = nullptr;
  const double *metrics = nullptr, *scalars = nullptr;
  float *main = nullptr, *m = nullptr, *v = nullptr;
  void *param = nullptr;
};
cudaError_t adamw(const device::AdamwCall &call, const AdamwOperands &operands,
                  cudaStream_t stream);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_LOSSKERNELS_H
