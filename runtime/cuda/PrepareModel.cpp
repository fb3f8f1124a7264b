//===- PrepareModel.cpp - linear kernels ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Matmul.h"
#include "runtime/cuda/Prepare.h"

namespace reckon::cuda {

namespace {

/// A product of operands 0 and 1 into operand 2. Without tokens there is
/// nothing to multiply, which libraries refuse to describe.
Prepared prepareProduct(const CudaContext &ctx, Kernel kernel,
                        const KernelCall &call, const MatmulShape &shape) {
  if (shape.m == 0 || shape.n == 0)
    return makePrepared(ctx, kernel, call, [](void *const *, cudaStream_t) {
      return cudaSuccess;
    });
  if (shape.k == 0) {
    size_t bytes = shape.accumulate
                       ? 0
                       : static_cast<size_t>(shape.m * shape.n *
                                             device::dtypeBytes(shape.c));
    return makePrepared(
        ctx, kernel, call, [=](void *const *p, cudaStream_t stream) {
          return bytes == 0 ? cudaSuccess
                            : cudaMemsetAsync(p[2], 0, bytes, stream);
        });
  }
  auto product = ctx.matmul.prepare(shape, call.stream);
  if (!product)
    return product.error();
  return makePrepared(
      ctx, kernel, call,
      [product = std::move(*product)](void *const *p, cudaStream_t stream) {
        return product->run({p[0], p[1], p[2]}, stream);
      });
}

} // namespace

Prepared prepareLinear(const CudaContext &ctx, const KernelCall &call) {
  auto parsed = device::parseLinear(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return prepareProduct(ctx, Kernel::Linear, call,
                        {.m = c.rows,
                         .n = c.n,
                         .k = c.k,
                         .a = c.dtype,
                         .b = c.dtype,
                         .c = c.dtype,
                         .transposeB = true});
}

Prepared prepareLinearGradInput(const CudaContext &ctx,
                                const KernelCall &call) {
  auto parsed = device::parseLinearGradInput(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return prepareProduct(ctx, Kernel::LinearGradInput, call,
                        {.m = c.rows,
                         .n = c.k,
                         .k = c.n,
                         .a = c.dtype,
                         .b = c.dtype,
                         .c = c.dtype});
}

Prepared prepareLinearGradWeight(const CudaContext &ctx,
                                 const KernelCall &call) {
  auto parsed = device::parseLinearGradWeight(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return prepareProduct(ctx, Kernel::LinearGradWeight, call,
                        {.m = c.n,
                         .n = c.k,
                         .k = c.rows,
                         .a = c.dtype,
                         .b = c.dtype,
                         .transposeA = true,
                         .accumulate = c.accumulate});
}

} // namespace reckon::cuda
