//===- PrepareLayerNorm.cpp - LayerNorm and GELU kernels ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Prepare.h"

namespace reckon::device {

namespace {

// As in PrepareRows.cpp: the last part of a vector is at the end of the array
// whatever the thread count.
constexpr int64_t cut = 64;

} // namespace

Prepared prepareLayerNorm(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseLayerNorm(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).layerNorm;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 8 * c.h, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.h, as<T>(p[1]), as<T>(p[2]),
               as<T>(p[3]) + begin * c.h, end - begin, c.h, c.eps);
      });
      return Status::success();
    });
  });
}

Prepared prepareLayerNormGradInput(const CpuContext &ctx,
                                   const KernelCall &call) {
  auto parsed = parseLayerNormGradInput(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).layerNormGradInput;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 12 * c.h, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.h, as<T>(p[1]) + begin * c.h,
               as<T>(p[2]), as<T>(p[3]) + begin * c.h, end - begin, c.h, c.eps);
      });
      return Status::success();
    });
  });
}

Prepared prepareLayerNormGradWeight(const CpuContext &ctx,
                                    const KernelCall &call) {
  auto parsed = parseLayerNormGradWeight(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).layerNormGradWeight;
    auto statistics = kernelsOf<T>(ctx.rows).layerNormStats;
    ctx.workspace.reserve(2 * c.rows * static_cast<int64_t>(sizeof(float)));
    return makePrepared(call, [=, parallel = ctx.parallel,
                               &workspace = ctx.workspace](void *const *p) {
      float *means = workspace.floats(), *rstds = means + c.rows;
      parallel.ranges(c.rows, 4 * c.h, [=](int64_t begin, int64_t end) {
        statistics(as<T>(p[1]) + begin * c.h, means + begin, rstds + begin,
                   end - begin, c.h, c.eps);
      });
      parallel.ranges(
          c.h, 8 * c.rows,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]), as<T>(p[1]), means, rstds, floats(p[2]),
                   floats(p[3]), c.rows, c.h, begin, end, c.accumulate);
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareGelu(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseGelu(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).gelu;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          c.n, 24,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]) + begin, as<T>(p[1]) + begin, end - begin);
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareGeluGrad(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseGeluGrad(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).geluGrad;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          c.n, 28,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]) + begin, as<T>(p[1]) + begin,
                   as<T>(p[2]) + begin, end - begin);
          },
          cut);
      return Status::success();
    });
  });
}

} // namespace reckon::device
