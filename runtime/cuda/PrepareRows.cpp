//===- PrepareRows.cpp - memory, embedding and row kernels ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Prepare.h"
#include "runtime/cuda/Workspace.h"

namespace reckon::cuda {

Prepared prepareFillZero(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseFillZero(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::FillZero, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return fillZero(p[0], c.bytes, stream);
                      });
}

Prepared prepareCopy(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseCopy(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::Copy, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return copy(p[0], p[1], c.bytes, stream);
                      });
}

Prepared prepareAdd(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseAdd(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::Add, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return add(storageOf(c.dtype), p[0], p[1], p[2], c.n,
                                   stream);
                      });
}

Prepared prepareEmbedding(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseEmbedding(call);
  if (!parsed)
    return parsed.error();
  Storage storage = storageOf(parsed->dtype);
  EmbeddingSizes sizes{parsed->rows, parsed->v, parsed->h, parsed->offset};
  return makePrepared(
      ctx, Kernel::Embedding, call, [=](void *const *p, cudaStream_t stream) {
        return embedding(storage, sizes, as<int32_t>(p[0]), p[1], p[2], stream);
      });
}

Prepared prepareEmbeddingGrad(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseEmbeddingGrad(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  EmbeddingSizes sizes{c.rows, c.v, c.h, c.offset};
  RECKON_TRY(ctx.workspace.reserve(call.stream, embeddingGradScratch(sizes)));
  return makePrepared(ctx, Kernel::EmbeddingGrad, call,
                      [=, &workspace = ctx.workspace, number = call.stream](
                          void *const *p, cudaStream_t stream) {
                        return embeddingGrad(storageOf(c.dtype), sizes,
                                             c.accumulate, p[0],
                                             as<int32_t>(p[1]), as<float>(p[2]),
                                             workspace.data(number), stream);
                      });
}

Prepared prepareRmsNorm(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseRmsNorm(call);
  if (!parsed)
    return parsed.error();
  Storage storage = storageOf(parsed->dtype);
  NormSizes sizes{parsed->rows, parsed->h, parsed->eps};
  return makePrepared(
      ctx, Kernel::RmsNorm, call, [=](void *const *p, cudaStream_t stream) {
        return rmsNorm(storage, sizes, p[0], p[1], p[2], stream);
      });
}

Prepared prepareRmsNormGradInput(const CudaContext &ctx,
                                 const KernelCall &call) {
  auto parsed = device::parseRmsNormGradInput(call);
  if (!parsed)
    return parsed.error();
  Storage storage = storageOf(parsed->dtype);
  NormSizes sizes{parsed->rows, parsed->h, parsed->eps};
  return makePrepared(ctx, Kernel::RmsNormGradInput, call,
                      [=](void *const *p, cudaStream_t stream) {
                        return rmsNormGradInput(storage, sizes, p[0], p[1],
                                                p[2], p[3], stream);
                      });
}

Prepared prepareRmsNormGradWeight(const CudaContext &ctx,
                                  const KernelCall &call) {
  auto parsed = device::parseRmsNormGradWeight(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  NormSizes sizes{c.rows, c.h, c.eps};
  RECKON_TRY(
      ctx.workspace.reserve(call.stream, rmsNormGradWeightScratch(sizes)));
  return makePrepared(ctx, Kernel::RmsNormGradWeight, call,
                      [=, &workspace = ctx.workspace, number = call.stream](
                          void *const *p, cudaStream_t stream) {
                        return rmsNormGradWeight(
                            storageOf(c.dtype), sizes, c.accumulate, p[0], p[1],
                            as<float>(p[2]), workspace.data(number), stream);
                      });
}

Prepared prepareRope(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseRope(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  RopeSizes sizes{c.rows, c.heads, c.d, c.s, c.inverse};
  return makePrepared(ctx, Kernel::Rope, call,
                      [=](void *const *p, cudaStream_t stream) {
                        return rope(storageOf(c.dtype), sizes, p[0],
                                    as<float>(p[1]), p[2], stream);
                      });
}

Prepared prepareSwiglu(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseSwiglu(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::Swiglu, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return swiglu(storageOf(c.dtype), p[0], p[1], p[2], c.n,
                                      stream);
                      });
}

Prepared prepareSwigluGrad(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseSwigluGrad(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::SwigluGrad, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return swigluGrad(storageOf(c.dtype), p[0], p[1], p[2],
                                          p[3], p[4], c.n, stream);
                      });
}

} // namespace reckon::cuda
