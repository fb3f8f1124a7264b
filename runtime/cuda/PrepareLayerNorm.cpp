//===- PrepareLayerNorm.cpp - LayerNorm and GELU kernels ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Prepare.h"
#include "runtime/cuda/Workspace.h"

namespace reckon::cuda {

Prepared prepareLayerNorm(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseLayerNorm(call);
  if (!parsed)
    return parsed.error();
  Storage storage = storageOf(parsed->dtype);
  NormSizes sizes{parsed->rows, parsed->h, parsed->eps};
  return makePrepared(
      ctx, Kernel::LayerNorm, call, [=](void *const *p, cudaStream_t stream) {
        return layerNorm(storage, sizes, p[0], p[1], p[2], p[3], stream);
      });
}

Prepared prepareLayerNormGradInput(const CudaContext &ctx,
                                   const KernelCall &call) {
  auto parsed = device::parseLayerNormGradInput(call);
  if (!parsed)
    return parsed.error();
  Storage storage = storageOf(parsed->dtype);
  NormSizes sizes{parsed->rows, parsed->h, parsed->eps};
  return makePrepared(ctx, Kernel::LayerNormGradInput, call,
                      [=](void *const *p, cudaStream_t stream) {
                        return layerNormGradInput(storage, sizes, p[0], p[1],
                                                  p[2], p[3], stream);
                      });
}

Prepared prepareLayerNormGradWeight(const CudaContext &ctx,
                                    const KernelCall &call) {
  auto parsed = device::parseLayerNormGradWeight(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  NormSizes sizes{c.rows, c.h, c.eps};
  RECKON_TRY(
      ctx.workspace.reserve(call.stream, layerNormGradWeightScratch(sizes)));
  return makePrepared(
      ctx, Kernel::LayerNormGradWeight, call,
      [=, &workspace = ctx.workspace,
       number = call.stream](void *const *p, cudaStream_t stream) {
        return layerNormGradWeight(storageOf(c.dtype), sizes, c.accumulate,
                                   p[0], p[1], as<float>(p[2]), as<float>(p[3]),
                                   workspace.data(number), stream);
      });
}

Prepared prepareGelu(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseGelu(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::Gelu, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return gelu(storageOf(c.dtype), p[0], p[1], c.n,
                                    stream);
                      });
}

Prepared prepareGeluGrad(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseGeluGrad(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::GeluGrad, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return geluGrad(storageOf(c.dtype), p[0], p[1], p[2],
                                        c.n, stream);
                      });
}

} // namespace reckon::cuda
