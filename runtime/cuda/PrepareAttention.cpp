//===- PrepareAttention.cpp - attention and its gradient ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Attention.h"
#include "runtime/cuda/Prepare.h"

namespace reckon::cuda {

Prepared prepareAttention(const CudaContext &ctx, const KernelCall &call) {
  auto shape = device::parseAttention(call);
  if (!shape)
    return shape.error();
  auto attention = ctx.attention.prepareForward(*shape, call.stream);
  if (!attention)
    return attention.error();
  return makePrepared(
      ctx, Kernel::Attention, call,
      [attention = std::move(*attention)](void *const *p, cudaStream_t stream) {
        return attention->run({p[0], p[1], p[2], p[3], as<float>(p[4])},
                              stream);
      });
}

Prepared prepareAttentionGrad(const CudaContext &ctx, const KernelCall &call) {
  auto shape = device::parseAttentionGrad(call);
  if (!shape)
    return shape.error();
  auto attention = ctx.attention.prepareBackward(*shape, call.stream);
  if (!attention)
    return attention.error();
  return makePrepared(
      ctx, Kernel::AttentionGrad, call,
      [attention = std::move(*attention)](void *const *p, cudaStream_t stream) {
        return attention->run({p[0], p[1], p[2], p[3], p[4], as<float>(p[5]),
                               p[6], p[7], p[8], as<float>(p[9])},
                              stream);
      });
}

} // namespace reckon::cuda
