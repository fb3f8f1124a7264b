//===- PrepareModel.cpp - linear, rotary and attention kernels ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Prepare.h"

#include <cstring>

namespace reckon::device {

namespace {

/// A product of operands 0 and 1 into operand 2. Without tokens there is
/// nothing to multiply, which oneDNN refuses to describe.
Prepared prepareProduct(const CpuContext &ctx, const KernelCall &call,
                        const MatmulShape &shape) {
  if (shape.m == 0 || shape.n == 0)
    return makePrepared(call, [](void *const *) { return Status::success(); });
  if (shape.k == 0) {
    int64_t bytes =
        shape.accumulate ? 0 : shape.m * shape.n * dtypeBytes(shape.to);
    return makePrepared(call, [=](void *const *p) {
      std::memset(p[2], 0, static_cast<size_t>(bytes));
      return Status::success();
    });
  }
  Result<Matmul *> matmul = ctx.matmuls.get(shape);
  if (!matmul)
    return matmul.error();
  return makePrepared(call, [=, product = *matmul](void *const *p) {
    return product->run(p[0], p[1], p[2]);
  });
}

AttentionSizes sizesOf(const AttentionCall &c) {
  return {c.hq, c.hkv, c.d, c.s};
}

/// Reserves scratch for every thread; returns the floats of one.
template <typename T>
int64_t threadScratch(const CpuContext &ctx, const AttentionSizes &sizes,
                      bool backward) {
  int64_t each = kernelsOf<T>(ctx.rows).attentionScratch(sizes, backward);
  ctx.workspace.reserve(each * ctx.parallel.threads() *
                        static_cast<int64_t>(sizeof(float)));
  return each;
}

} // namespace

Prepared prepareLinear(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseLinear(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return prepareProduct(ctx, call,
                        {.m = c.rows,
                         .n = c.n,
                         .k = c.k,
                         .from = c.dtype,
                         .to = c.dtype,
                         .transposeB = true});
}

Prepared prepareLinearGradInput(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseLinearGradInput(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return prepareProduct(
      ctx, call,
      {.m = c.rows, .n = c.k, .k = c.n, .from = c.dtype, .to = c.dtype});
}

Prepared prepareLinearGradWeight(const CpuContext &ctx,
                                 const KernelCall &call) {
  auto parsed = parseLinearGradWeight(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return prepareProduct(ctx, call,
                        {.m = c.n,
                         .n = c.k,
                         .k = c.rows,
                         .from = c.dtype,
                         .transposeA = true,
                         .accumulate = c.accumulate});
}

Prepared prepareRope(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseRope(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  const float sign = c.inverse ? -1.0f : 1.0f;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rope;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 8 * c.heads * c.d,
                      [=](int64_t begin, int64_t end) {
                        kernel(as<T>(p[0]), floats(p[1]), as<T>(p[2]), begin,
                               end - begin, c.heads, c.d, c.s, sign);
                      });
      return Status::success();
    });
  });
}

Prepared prepareAttention(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseAttention(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  const AttentionSizes sizes = sizesOf(c);
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).attentionForward;
    int64_t scratch = threadScratch<T>(ctx, sizes, false);
    int64_t blocks = (c.s + attentionBlock - 1) / attentionBlock;
    return makePrepared(call, [=, parallel = ctx.parallel,
                               &workspace = ctx.workspace](void *const *p) {
      AttentionForward<T> forward{sizes,       as<T>(p[0]), as<T>(p[1]),
                                  as<T>(p[2]), as<T>(p[3]), floats(p[4])};
      // Heads vary fastest: neighbouring tasks have equally many key blocks, so
      // that dealing them out keeps the threads even.
      parallel.tasks(c.batch * blocks * sizes.hq,
                     [&](int64_t task, int thread) {
                       int64_t head = task % sizes.hq, rest = task / sizes.hq;
                       kernel(forward, rest / blocks, head, rest % blocks,
                              workspace.floats() + thread * scratch);
                     });
      return Status::success();
    });
  });
}

Prepared prepareAttentionGrad(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseAttentionGrad(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  const AttentionSizes sizes = sizesOf(c);
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).attentionBackward;
    int64_t scratch = threadScratch<T>(ctx, sizes, true);
    return makePrepared(call, [=, parallel = ctx.parallel,
                               &workspace = ctx.workspace](void *const *p) {
      AttentionBackward<T> backward{sizes,        as<T>(p[0]), as<T>(p[1]),
                                    as<T>(p[2]),  as<T>(p[3]), as<T>(p[4]),
                                    floats(p[5]), as<T>(p[6]), as<T>(p[7]),
                                    as<T>(p[8]),  floats(p[9])};
      parallel.tasks(c.batch * sizes.hkv, [&](int64_t task, int thread) {
        kernel(backward, task / sizes.hkv, task % sizes.hkv,
               workspace.floats() + thread * scratch);
      });
      return Status::success();
    });
  });
}

} // namespace reckon::device
