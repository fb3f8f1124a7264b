//===- PrepareModel.cpp - linear, rotary and attention kernels ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Prepare.h"

namespace reckon::device {

namespace {

/// A product of operands 0 and 1 into operand 2. Without tokens there is
/// nothing to multiply, which oneDNN refuses to describe.
Prepared prepareProduct(const CpuContext &ctx, const KernelCall &call,
                        const MatmulShape &shape) {
  if (shape.m == 0 || shape.n == 0)
    return makePrepared(call, [](void *const *) { return Status::success(); });
  if (shape.k == 0) {
    int64_t n = shape.accumulate ? 0 : shape.m * shape.n;
    return makePrepared(call, [=](void *const *p) {
      for (int64_t i = 0; i < n; ++i)
        floats(p[2])[i] = 0.0f;
      return Status::success();
    });
  }
  Result<Matmul *> matmul = ctx.matmuls.get(shape);
  if (!matmul)
    return matmul.error();
  return makePrepared(call, [=, product = *matmul](void *const *p) {
    return product->run(floats(p[0]), floats(p[1]), floats(p[2]));
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
int64_t threadScratch(const CpuContext &ctx, const AttentionSizes &sizes,
                      bool backward) {
  int64_t each = ctx.rows.attentionScratch(sizes, backward);
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
  check.input(0, "x", rows * k);
  check.input(1, "w", n * k);
  check.output(0, "y", rows * n);
  if (!check.ok())
    return check.error();
  return prepareProduct(ctx, call,
                        {.m = rows, .n = n, .k = k, .transposeB = true});
}

Prepared prepareLinearGradInput(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::LinearGradInput, call);
  if (!check.ok())
    return check.error();
  int64_t n = check.arg(0, "N"), k = check.arg(1, "K");
  int64_t rows = check.rowsOfInput(0, "dy", n);
  check.input(0, "dy", rows * n);
  check.input(1, "w", n * k);
  check.output(0, "dx", rows * k);
  if (!check.ok())
    return check.error();
  return prepareProduct(ctx, call, {.m = rows, .n = k, .k = n});
}

Prepared prepareLinearGradWeight(const CpuContext &ctx,
                                 const KernelCall &call) {
  CallCheck check(Kernel::LinearGradWeight, call);
  if (!check.ok())
    return check.error();
  int64_t n = check.arg(0, "N"), k = check.arg(1, "K");
  bool accumulate = check.flag(2, "ACC");
  int64_t rows = check.rowsOfInput(0, "dy", n);
  check.input(0, "dy", rows * n);
  check.input(1, "x", rows * k);
  check.output(0, "gw", n * k);
  if (!check.ok())
    return check.error();
  return prepareProduct(ctx, call,
                        {.m = n,
                         .n = k,
                         .k = rows,
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
  check.input(0, "x", rows * heads * d);
  check.input(1, "table", s * d);
  check.output(0, "y", rows * heads * d);
  check.require(rows % s == 0,
                "tokens in whole sequences of " + std::to_string(s),
                std::to_string(rows));
  if (!check.ok())
    return check.error();
  auto kernel = ctx.rows.rope;
  return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
    parallel.ranges(rows, 8 * heads * d, [=](int64_t begin, int64_t end) {
      kernel(floats(p[0]), floats(p[1]), floats(p[2]), begin, end - begin,
             heads, d, s, sign);
    });
    return Status::success();
  });
}

Prepared prepareAttention(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Attention, call);
  if (!check.ok())
    return check.error();
  AttentionSizes sizes = attentionSizes(check);
  const auto [hq, hkv, d, s] = sizes;
  int64_t batch = check.rowsOfInput(0, "q", s * hq * d);
  check.input(0, "q", batch * s * hq * d);
  check.input(1, "k", batch * s * hkv * d);
  check.input(2, "v", batch * s * hkv * d);
  check.output(0, "o", batch * s * hq * d);
  check.output(1, "lse", batch * hq * s);
  if (!check.ok())
    return check.error();
  auto kernel = ctx.rows.attentionForward;
  int64_t scratch = threadScratch(ctx, sizes, false);
  int64_t blocks = (s + attentionBlock - 1) / attentionBlock;
  return makePrepared(call, [=, parallel = ctx.parallel,
                             &workspace = ctx.workspace](void *const *p) {
    AttentionForward forward{sizes,        floats(p[0]), floats(p[1]),
                             floats(p[2]), floats(p[3]), floats(p[4])};
    // Heads vary fastest: neighbouring tasks have equally many key blocks, so
    // that dealing them out keeps the threads even.
    parallel.tasks(batch * blocks * sizes.hq, [&](int64_t task, int thread) {
      int64_t head = task % sizes.hq, rest = task / sizes.hq;
      kernel(forward, rest / blocks, head, rest % blocks,
             workspace.floats() + thread * scratch);
    });
    return Status::success();
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
  check.input(0, "do", queries);
  check.input(1, "q", queries);
  check.input(2, "k", keys);
  check.input(3, "v", keys);
  check.input(4, "o", queries);
  check.input(5, "lse", batch * hq * s);
  check.output(0, "dq", queries);
  check.output(1, "dk", keys);
  check.output(2, "dv", keys);
  check.output(3, "delta", batch * hq * s);
  if (!check.ok())
    return check.error();
  auto kernel = ctx.rows.attentionBackward;
  int64_t scratch = threadScratch(ctx, sizes, true);
  return makePrepared(call, [=, parallel = ctx.parallel,
                             &workspace = ctx.workspace](void *const *p) {
    AttentionBackward backward{sizes,        floats(p[0]), floats(p[1]),
                               floats(p[2]), floats(p[3]), floats(p[4]),
                               floats(p[5]), floats(p[6]), floats(p[7]),
                               floats(p[8]), floats(p[9])};
    parallel.tasks(batch * sizes.hkv, [&](int64_t task, int thread) {
      kernel(backward, task / sizes.hkv, task % sizes.hkv,
             workspace.floats() + thread * scratch);
    });
    return Status::success();
  });
}

} // namespace reckon::device
