//===- PrepareFp8.cpp - largest magnitude, fp8 casts and products ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/base/Fp8Layout.h"
#include "runtime/cuda/Matmul.h"
#include "runtime/cuda/Prepare.h"
#include "runtime/cuda/kernels/Fp8Kernels.h"

namespace reckon::cuda {

Prepared prepareAmax(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseAmax(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(ctx, Kernel::Amax, call,
                      [c = *parsed](void *const *p, cudaStream_t stream) {
                        return amax(c, p[0], as<float>(p[1]), stream);
                      });
}

Prepared prepareCastFp8(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseCastFp8(call);
  if (!parsed)
    return parsed.error();
  return makePrepared(
      ctx, Kernel::CastFp8, call,
      [c = *parsed](void *const *p, cudaStream_t stream) {
        void *straight = c.straight ? p[3] : nullptr;
        void *transposed = c.transposed ? p[c.straight ? 4 : 3] : nullptr;
        return castFp8(c, p[0], as<float>(p[1]), as<float>(p[2]), straight,
                       transposed, stream);
      });
}

/// The zeros that pad the summed dimension are multiplied with the rest.
Prepared prepareLinearFp8(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseLinearFp8(call);
  if (!parsed)
    return parsed.error();
  auto product = ctx.matmul.prepare({.m = parsed->m,
                                     .n = parsed->n,
                                     .k = fp8Padded(parsed->k),
                                     .a = parsed->a,
                                     .b = parsed->b,
                                     .c = parsed->to,
                                     .transposeB = true,
                                     .accumulate = parsed->accumulate},
                                    call.stream);
  if (!product)
    return product.error();
  return makePrepared(
      ctx, Kernel::LinearFp8, call,
      [product = std::move(*product)](void *const *p, cudaStream_t stream) {
        return product->run(
            {p[0], p[2], p[4], as<float>(p[1]), as<float>(p[3])}, stream);
      });
}

} // namespace reckon::cuda
