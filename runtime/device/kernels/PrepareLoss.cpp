//===- PrepareLoss.cpp - loss, gradient norm and optimizer kernels --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Prepare.h"

#include <algorithm>
#include <cmath>

namespace reckon::device {

namespace {

struct Columns {
  int64_t v = 0, valid = 0, offset = 0;
};

/// args V, valid and, when `located`, vocab_offset.
Columns columns(CallCheck &check, bool located) {
  Columns c;
  c.v = check.arg(0, "V");
  c.valid = check.arg(1, "valid", 0);
  if (located)
    c.offset = check.arg(2, "vocab_offset", 0);
  check.require(c.valid <= c.v, "valid of at most V = " + std::to_string(c.v),
                std::to_string(c.valid));
  return c;
}

} // namespace

Prepared prepareCrossEntropyMax(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropyMax, call);
  if (!check.ok())
    return check.error();
  Columns c = columns(check, false);
  int64_t rows = check.rowsOfInput(0, "logits", c.v);
  DType dtype = check.storage(0, "logits");
  check.input(0, "logits", rows * c.v, dtype);
  check.output(0, "max", rows);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rowMax;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(rows, 4 * c.v, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.v, floats(p[1]) + begin, end - begin,
               c.v, c.valid);
      });
      return Status::success();
    });
  });
}

Prepared prepareCrossEntropySum(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropySum, call);
  if (!check.ok())
    return check.error();
  Columns c = columns(check, true);
  int64_t rows = check.rowsOfInput(0, "logits", c.v);
  DType dtype = check.storage(0, "logits");
  check.input(0, "logits", rows * c.v, dtype);
  check.input(1, "targets", rows, DType::I32);
  check.input(2, "max", rows);
  check.output(0, "sums", 2 * rows);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rowSums;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(rows, 16 * c.v, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.v, tokens(p[1]) + begin,
               floats(p[2]) + begin, floats(p[3]) + begin,
               floats(p[3]) + rows + begin, end - begin, c.v, c.valid,
               c.offset);
      });
      return Status::success();
    });
  });
}

Prepared prepareCrossEntropyLoss(const CpuContext &ctx,
                                 const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropyLoss, call);
  if (!check.ok())
    return check.error();
  bool owner = check.flag(0, "OWNER");
  int64_t rows = check.rowsOfInput(0, "sums", 2);
  check.input(0, "sums", 2 * rows);
  check.input(1, "max", rows);
  check.output(0, "lse", rows);
  check.block(call.outputs[1], "metrics", metricSlots);
  if (!check.ok())
    return check.error();
  return makePrepared(call, [=](void *const *p) {
    const float *sums = floats(p[0]), *terms = sums + rows;
    const float *max = floats(p[1]);
    float *lse = floats(p[2]);
    // One logarithm a row, of thousands of columns: libm is not hot here.
    double loss = 0.0;
    for (int64_t r = 0; r < rows; ++r) {
      double logSum = std::log(static_cast<double>(sums[r]));
      lse[r] = static_cast<float>(max[r] + logSum);
      loss += logSum - terms[r];
    }
    if (owner)
      doubles(p[3])[MetricLossSum] += loss;
    return Status::success();
  });
}

Prepared prepareCrossEntropyGrad(const CpuContext &ctx,
                                 const KernelCall &call) {
  CallCheck check(Kernel::CrossEntropyGrad, call);
  if (!check.ok())
    return check.error();
  Columns c = columns(check, true);
  int64_t rows = check.rowsOfInput(0, "logits", c.v);
  DType dtype = check.storage(0, "logits");
  check.input(0, "logits", rows * c.v, dtype);
  check.input(1, "targets", rows, DType::I32);
  check.input(2, "lse", rows);
  check.output(0, "dlogits", rows * c.v, dtype);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).crossEntropyGrad;
    float scale = static_cast<float>(call.floats[0]);
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(rows, 16 * c.v, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.v, tokens(p[1]) + begin,
               floats(p[2]) + begin, as<T>(p[3]) + begin * c.v, end - begin,
               c.v, c.valid, c.offset, scale);
      });
      return Status::success();
    });
  });
}

Prepared prepareSumSquares(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::SumSquares, call);
  if (!check.ok())
    return check.error();
  bool owner = check.flag(0, "OWNER");
  int64_t n = call.inputs[0].elements;
  check.input(0, "x", n);
  check.block(call.outputs[0], "metrics", metricSlots);
  if (!check.ok())
    return check.error();
  if (!owner)
    return makePrepared(call, [](void *const *) { return Status::success(); });
  auto kernel = ctx.rows.sumSquares;
  // Partial sums of fixed chunks, added in order: the same bits for any number
  // of threads.
  constexpr int64_t chunk = 1 << 15;
  int64_t chunks = (n + chunk - 1) / chunk;
  ctx.workspace.reserve(chunks * static_cast<int64_t>(sizeof(double)));
  return makePrepared(call, [=, parallel = ctx.parallel,
                             &workspace = ctx.workspace](void *const *p) {
    double *parts = doubles(workspace.data());
    parallel.ranges(chunks, 4 * chunk, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        parts[i] =
            kernel(floats(p[0]) + i * chunk, std::min(chunk, n - i * chunk));
    });
    double total = 0.0;
    for (int64_t i = 0; i < chunks; ++i)
      total += parts[i];
    doubles(p[1])[MetricSquaredNorm] += total;
    return Status::success();
  });
}

Prepared prepareClipFactor(const CpuContext &, const KernelCall &call) {
  CallCheck check(Kernel::ClipFactor, call);
  if (!check.ok())
    return check.error();
  check.block(call.outputs[0], "metrics", metricSlots);
  if (!check.ok())
    return check.error();
  double clip = call.floats[0];
  return makePrepared(call, [=](void *const *p) {
    double *metrics = doubles(p[0]);
    double norm = std::sqrt(metrics[MetricSquaredNorm]);
    metrics[MetricNorm] = norm;
    // A norm that is NaN makes the factor NaN: the fault must not be hidden.
    double factor = clip / (norm + 1e-6);
    metrics[MetricClipFactor] = clip <= 0.0 || factor > 1.0 ? 1.0 : factor;
    return Status::success();
  });
}

Prepared prepareAdamw(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Adamw, call);
  if (!check.ok())
    return check.error();
  int64_t n = call.inputs[0].elements;
  check.input(0, "grad", n);
  check.block(call.inputs[1], "metrics", metricSlots);
  check.block(call.inputs[2], "scalars", scalarSlots);
  check.output(0, "main", n);
  check.output(1, "m", n);
  check.output(2, "v", n);
  bool cast = call.outputs.size() == 4;
  if (cast)
    check.output(3, "param", n, DType::BF16);
  if (!check.ok())
    return check.error();
  double beta1 = call.floats[0], beta2 = call.floats[1], eps = call.floats[2];
  double decay = call.floats[3];
  auto kernel = ctx.rows.adamw;
  return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
    const double *scalars = doubles(p[2]);
    double lr = scalars[ScalarLearningRate];
    AdamwStep step;
    step.grad = floats(p[0]);
    step.main = floats(p[3]);
    step.m = floats(p[4]);
    step.v = floats(p[5]);
    step.param = cast ? as<Bf16>(p[6]) : nullptr;
    step.factor = static_cast<float>(doubles(p[1])[MetricClipFactor]);
    step.beta1 = static_cast<float>(beta1);
    step.oneMinusBeta1 = static_cast<float>(1.0 - beta1);
    step.beta2 = static_cast<float>(beta2);
    step.oneMinusBeta2 = static_cast<float>(1.0 - beta2);
    step.eps = static_cast<float>(eps);
    step.keep = static_cast<float>(1.0 - lr * decay);
    step.stepSize = static_cast<float>(lr / scalars[ScalarBias1]);
    step.inverseRoot =
        static_cast<float>(1.0 / std::sqrt(scalars[ScalarBias2]));
    parallel.ranges(
        n, 28, [&](int64_t begin, int64_t end) { kernel(step, begin, end); },
        64);
    return Status::success();
  });
}

} // namespace reckon::device
