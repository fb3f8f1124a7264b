//===- PrepareLoss.cpp - loss, gradient norm and optimizer kernels --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Prepare.h"
#include "runtime/cuda/Workspace.h"
#include "runtime/cuda/kernels/LossKernels.h"

namespace reckon::cuda {

Prepared prepareCrossEntropyMax(const CudaContext &ctx,
                                const KernelCall &call) {
  auto parsed = device::parseCrossEntropyMax(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::CrossEntropyMax, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return crossEntropyMax(c, p[0], as<float>(p[1]),
                                               stream);
                      });
}

Prepared prepareCrossEntropySum(const CudaContext &ctx,
                                const KernelCall &call) {
  auto parsed = device::parseCrossEntropySum(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::CrossEntropySum, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return crossEntropySum(c, p[0], as<int32_t>(p[1]),
                                               as<float>(p[2]), as<float>(p[3]),
                                               stream);
                      });
}

Prepared prepareCrossEntropyLoss(const CudaContext &ctx,
                                 const KernelCall &call) {
  auto parsed = device::parseCrossEntropyLoss(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::CrossEntropyLoss, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return crossEntropyLoss(
                            c, as<float>(p[0]), as<float>(p[1]),
                            as<float>(p[2]), as<double>(p[3]), stream);
                      });
}

Prepared prepareCrossEntropyGrad(const CudaContext &ctx,
                                 const KernelCall &call) {
  auto parsed = device::parseCrossEntropyGrad(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::CrossEntropyGrad, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return crossEntropyGrad(c, p[0], as<int32_t>(p[1]),
                                                as<float>(p[2]), p[3], stream);
                      });
}

Prepared prepareSumSquares(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseSumSquares(call);
  if (!parsed)
    return parsed.error();
  if (parsed->owner)
    RECKON_TRY(ctx.workspace.reserve(call.stream,
                                     sumSquaresParts(parsed->n) *
                                         static_cast<int64_t>(sizeof(double))));
  return makePrepared(
      ctx, Kernel::SumSquares, call,
      [c = *parsed, &workspace = ctx.workspace,
       number = call.stream](void *const *p, cudaStream_t stream) {
        return sumSquares(c, as<float>(p[0]),
                          as<double>(workspace.data(number)), as<double>(p[1]),
                          stream);
      });
}

Prepared prepareClipFactor(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseClipFactor(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::ClipFactor, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return clipFactor(c, as<double>(p[0]), stream);
                      });
}

Prepared prepareAdamw(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseAdamw(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::Adamw, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        AdamwOperands operands{
                            as<float>(p[0]),        as<double>(p[1]),
                            as<double>(p[2]),       as<float>(p[3]),
                            as<float>(p[4]),        as<float>(p[5]),
                            c.cast ? p[6] : nullptr};
                        return adamw(c, operands, stream);
                      });
}

} // namespace reckon::cuda
