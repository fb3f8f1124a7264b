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

AttentionSizes attentionSizes(CallCheck &check) {
  AttentionSizes sizes{check.arg(0, "Hq"), check.arg(1, "Hkv"),
                       check.arg(2, "D"), check.arg(3, "S")};
  check.require(sizes.hkv >= 1 && sizes.hq % sizes.hkv == 0,
                "Hq to be a multiple of Hkv",
                std::to_string(sizes.hq) + " and " + std::to_string(sizes.hkv));
  return sizes;
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
  CallCheck check(Kernel::Linear, call);
  if (!check.ok())
    return check.error();
  int64_t n = check.arg(0, "N"), k = check.arg(1, "K");
  int64_t rows = check.rowsOfInput(0, "x", k);
  DType dtype = check.storage(0, "x");
  check.input(0, "x", rows * k, dtype);
  check.input(1, "w", n * k, dtype);
  check.output(0, "y", rows * n, dtype);
  if (!check.ok())
    return check.error();
  return prepareProduct(ctx, call,
                        {.m = rows,
                         .n = n,
                         .k = k,
                         .from = dtype,
                         .to = dtype,
                         .transposeB = true});
}

Prepared prepareLinearGradInput(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::LinearGradInput, call);
  if (!check.ok())
    return check.error();
  int64_t n = check.arg(0, "N"), k = check.arg(1, "K");
  int64_t rows = check.rowsOfInput(0, "dy", n);
  DType dtype = check.storage(0, "dy");
  check.input(0, "dy", rows * n, dtype);
  check.input(1, "w", n * k, dtype);
  check.output(0, "dx", rows * k, dtype);
  if (!check.ok())
    return check.error();
  return prepareProduct(
      ctx, call, {.m = rows, .n = k, .k = n, .from = dtype, .to = dtype});
}

Prepared prepareLinearGradWeight(const CpuContext &ctx,
                                 const KernelCall &call) {
  CallCheck check(Kernel::LinearGradWeight, call);
  if (!check.ok())
    return check.error();
  int64_t n = check.arg(0, "N"), k = check.arg(1, "K");
  bool accumulate = check.flag(2, "ACC");
  int64_t rows = check.rowsOfInput(0, "dy", n);
  DType dtype = check.storage(0, "dy");
  check.input(0, "dy", rows * n, dtype);
  check.input(1, "x", rows * k, dtype);
  check.output(0, "gw", n * k);
  if (!check.ok())
    return check.error();
  return prepareProduct(ctx, call,
                        {.m = n,
                         .n = k,
                         .k = rows,
                         .from = dtype,
                         .transposeA = true,
                         .accumulate = accumulate});
}

Prepared prepareRope(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Rope, call);
  if (!check.ok())
    return check.error();
  int64_t heads = check.arg(0, "heads"), d = check.arg(1, "D");
  int64_t s = check.arg(2, "S");
  float sign = check.flag(3, "inverse") ? -1.0f : 1.0f;
  check.require(d % 2 == 0, "an even D", std::to_string(d));
  int64_t rows = check.rowsOfInput(0, "x", heads * d);
  DType dtype = check.storage(0, "x");
  check.input(0, "x", rows * heads * d, dtype);
  check.input(1, "table", s * d);
  check.output(0, "y", rows * heads * d, dtype);
  check.require(rows % s == 0,
                "tokens in whole sequences of " + std::to_string(s),
                std::to_string(rows));
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rope;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(rows, 8 * heads * d, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]), floats(p[1]), as<T>(p[2]), begin, end - begin,
               heads, d, s, sign);
      });
      return Status::success();
    });
  });
}

Prepared prepareAttention(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Attention, call);
  if (!check.ok())
    return check.error();
  AttentionSizes sizes = attentionSizes(check);
  const auto [hq, hkv, d, s] = sizes;
  int64_t batch = check.rowsOfInput(0, "q", s * hq * d);
  DType dtype = check.storage(0, "q");
  check.input(0, "q", batch * s * hq * d, dtype);
  check.input(1, "k", batch * s * hkv * d, dtype);
  check.input(2, "v", batch * s * hkv * d, dtype);
  check.output(0, "o", batch * s * hq * d, dtype);
  check.output(1, "lse", batch * hq * s);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).attentionForward;
    int64_t scratch = threadScratch<T>(ctx, sizes, false);
    int64_t blocks = (s + attentionBlock - 1) / attentionBlock;
    return makePrepared(call, [=, parallel = ctx.parallel,
                               &workspace = ctx.workspace](void *const *p) {
      AttentionForward<T> forward{sizes,       as<T>(p[0]), as<T>(p[1]),
                                  as<T>(p[2]), as<T>(p[3]), floats(p[4])};
      // Heads vary fastest: neighbouring tasks have equally many key blocks, so
      // that dealing them out keeps the threads even.
      parallel.tasks(batch * blocks * sizes.hq, [&](int64_t task, int thread) {
        int64_t head = task % sizes.hq, rest = task / sizes.hq;
        kernel(forward, rest / blocks, head, rest % blocks,
               workspace.floats() + thread * scratch);
      });
      return Status::success();
    });
  });
}

Prepared prepareAttentionGrad(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::AttentionGrad, call);
  if (!check.ok())
    return check.error();
  AttentionSizes sizes = attentionSizes(check);
  const auto [hq, hkv, d, s] = sizes;
  int64_t batch = check.rowsOfInput(0, "do", s * hq * d);
  int64_t queries = batch * s * hq * d, keys = batch * s * hkv * d;
  DType dtype = check.storage(0, "do");
  check.input(0, "do", queries, dtype);
  check.input(1, "q", queries, dtype);
  check.input(2, "k", keys, dtype);
  check.input(3, "v", keys, dtype);
  check.input(4, "o", queries, dtype);
  check.input(5, "lse", batch * hq * s);
  check.output(0, "dq", queries, dtype);
  check.output(1, "dk", keys, dtype);
  check.output(2, "dv", keys, dtype);
  check.output(3, "delta", batch * hq * s);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).attentionBackward;
    int64_t scratch = threadScratch<T>(ctx, sizes, true);
    return makePrepared(call, [=, parallel = ctx.parallel,
                               &workspace = ctx.workspace](void *const *p) {
      AttentionBackward<T> backward{sizes,        as<T>(p[0]), as<T>(p[1]),
                                    as<T>(p[2]),  as<T>(p[3]), as<T>(p[4]),
                                    floats(p[5]), as<T>(p[6]), as<T>(p[7]),
                                    as<T>(p[8]),  floats(p[9])};
      parallel.tasks(batch * sizes.hkv, [&](int64_t task, int thread) {
        kernel(backward, task / sizes.hkv, task % sizes.hkv,
               workspace.floats() + thread * scratch);
      });
      return Status::success();
    });
  });
}

} // namespace reckon::device
