//===- PrepareLoss.cpp - loss, gradient norm and optimizer kernels --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Prepare.h"

#include <algorithm>
#include <cmath>

namespace reckon::device {

Prepared prepareCrossEntropyMax(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseCrossEntropyMax(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rowMax;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 4 * c.v, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.v, floats(p[1]) + begin, end - begin,
               c.v, c.valid);
      });
      return Status::success();
    });
  });
}

Prepared prepareCrossEntropySum(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseCrossEntropySum(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rowSums;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 16 * c.v, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.v, tokens(p[1]) + begin,
               floats(p[2]) + begin, floats(p[3]) + begin,
               floats(p[3]) + c.rows + begin, end - begin, c.v, c.valid,
               c.offset);
      });
      return Status::success();
    });
  });
}

Prepared prepareCrossEntropyLoss(const CpuContext &ctx,
                                 const KernelCall &call) {
  auto parsed = parseCrossEntropyLoss(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return makePrepared(call, [=](void *const *p) {
    const float *sums = floats(p[0]), *terms = sums + c.rows;
    const float *max = floats(p[1]);
    float *lse = floats(p[2]);
    // One logarithm a row, of thousands of columns: libm is not hot here.
    double loss = 0.0;
    for (int64_t r = 0; r < c.rows; ++r) {
      double logSum = std::log(static_cast<double>(sums[r]));
      lse[r] = static_cast<float>(max[r] + logSum);
      loss += logSum - terms[r];
    }
    if (c.owner)
      doubles(p[3])[MetricLossSum] += loss;
    return Status::success();
  });
}

Prepared prepareCrossEntropyGrad(const CpuContext &ctx,
                                 const KernelCall &call) {
  auto parsed = parseCrossEntropyGrad(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).crossEntropyGrad;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 16 * c.v, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.v, tokens(p[1]) + begin,
               floats(p[2]) + begin, as<T>(p[3]) + begin * c.v, end - begin,
               c.v, c.valid, c.offset, c.scale);
      });
      return Status::success();
    });
  });
}

Prepared prepareSumSquares(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseSumSquares(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  if (!c.owner)
    return makePrepared(call, [](void *const *) { return Status::success(); });
  auto kernel = ctx.rows.sumSquares;
  // Partial sums of fixed chunks, added in order: the same bits for any number
  // of threads.
  constexpr int64_t chunk = 1 << 15;
  int64_t chunks = (c.n + chunk - 1) / chunk;
  ctx.workspace.reserve(chunks * static_cast<int64_t>(sizeof(double)));
  return makePrepared(call, [=, parallel = ctx.parallel,
                             &workspace = ctx.workspace](void *const *p) {
    double *parts = doubles(workspace.data());
    parallel.ranges(chunks, 4 * chunk, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        parts[i] =
            kernel(floats(p[0]) + i * chunk, std::min(chunk, c.n - i * chunk));
    });
    double total = 0.0;
    for (int64_t i = 0; i < chunks; ++i)
      total += parts[i];
    doubles(p[1])[MetricSquaredNorm] += total;
    return Status::success();
  });
}

Prepared prepareClipFactor(const CpuContext &, const KernelCall &call) {
  auto parsed = parseClipFactor(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return makePrepared(call, [=](void *const *p) {
    double *metrics = doubles(p[0]);
    double norm = std::sqrt(metrics[MetricSquaredNorm]);
    metrics[MetricNorm] = norm;
    // A norm that is NaN makes the factor NaN: the fault must not be hidden.
    double factor = c.clip / (norm + 1e-6);
    metrics[MetricClipFactor] = c.clip <= 0.0 || factor > 1.0 ? 1.0 : factor;
    return Status::success();
  });
}

Prepared prepareAdamw(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseAdamw(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  auto kernel = ctx.rows.adamw;
  return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
    const double *scalars = doubles(p[2]);
    double lr = scalars[ScalarLearningRate];
    AdamwStep step;
    step.grad = floats(p[0]);
    step.main = floats(p[3]);
    step.m = floats(p[4]);
    step.v = floats(p[5]);
    step.param = c.cast ? as<Bf16>(p[6]) : nullptr;
    step.factor = static_cast<float>(doubles(p[1])[MetricClipFactor]);
    step.beta1 = static_cast<float>(c.beta1);
    step.oneMinusBeta1 = static_cast<float>(1.0 - c.beta1);
    step.beta2 = static_cast<float>(c.beta2);
    step.oneMinusBeta2 = static_cast<float>(1.0 - c.beta2);
    step.eps = static_cast<float>(c.eps);
    step.keep = static_cast<float>(1.0 - lr * c.decay);
    step.stepSize = static_cast<float>(lr / scalars[ScalarBias1]);
    step.inverseRoot =
        static_cast<float>(1.0 / std::sqrt(scalars[ScalarBias2]));
    parallel.ranges(
        c.n, 28, [&](int64_t begin, int64_t end) { kernel(step, begin, end); },
        64);
    return Status::success();
  });
}

} // namespace reckon::device
