//===- PrepareRows.cpp - memory, embedding, norm and activation kernels ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Prepare.h"

#include <cstring>

namespace reckon::device {

namespace {

// Flat arrays are cut at multiples of this many elements, so that the last
// part of a vector is at the end of the array whatever the thread count.
constexpr int64_t cut = 64;

} // namespace

Prepared prepareFillZero(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::FillZero, call);
  if (!check.ok())
    return check.error();
  int64_t bytes = call.outputs[0].elements * dtypeBytes(call.outputs[0].dtype);
  return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
    parallel.ranges(bytes, 1, [=](int64_t begin, int64_t end) {
      std::memset(static_cast<char *>(p[0]) + begin, 0, end - begin);
    });
    return Status::success();
  });
}

Prepared prepareCopy(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Copy, call);
  if (!check.ok())
    return check.error();
  const Operand &from = call.inputs[0];
  check.output(0, "y", from.elements, from.dtype);
  if (!check.ok())
    return check.error();
  int64_t bytes = from.elements * dtypeBytes(from.dtype);
  return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
    parallel.ranges(bytes, 2, [=](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char *>(p[1]) + begin,
                  static_cast<char *>(p[0]) + begin, end - begin);
    });
    return Status::success();
  });
}

Prepared prepareAdd(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Add, call);
  if (!check.ok())
    return check.error();
  int64_t n = call.inputs[0].elements;
  DType dtype = check.storage(0, "a");
  check.input(0, "a", n, dtype);
  check.input(1, "b", n, dtype);
  check.output(0, "c", n, dtype);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).add;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          n, 12,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]) + begin, as<T>(p[1]) + begin,
                   as<T>(p[2]) + begin, end - begin);
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareEmbedding(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Embedding, call);
  if (!check.ok())
    return check.error();
  int64_t v = check.arg(0, "V"), h = check.arg(1, "H");
  int64_t offset = check.arg(2, "vocab_offset", 0);
  int64_t rows = call.inputs[0].elements;
  DType dtype = check.storage(1, "weight");
  check.input(0, "tokens", rows, DType::I32);
  check.input(1, "weight", v * h, dtype);
  check.output(0, "y", rows * h, dtype);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(rows, 8 * h, [=](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          int64_t row = tokens(p[0])[r] - offset;
          T *y = as<T>(p[2]) + r * h;
          if (row >= 0 && row < v)
            std::memcpy(y, as<T>(p[1]) + row * h, h * sizeof(T));
          else
            std::memset(y, 0, h * sizeof(T));
        }
      });
      return Status::success();
    });
  });
}

Prepared prepareEmbeddingGrad(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::EmbeddingGrad, call);
  if (!check.ok())
    return check.error();
  int64_t v = check.arg(0, "V"), h = check.arg(1, "H");
  int64_t offset = check.arg(2, "vocab_offset", 0);
  bool accumulate = check.flag(3, "ACC");
  int64_t rows = check.rowsOfInput(0, "dy", h);
  DType dtype = check.storage(0, "dy");
  check.input(0, "dy", rows * h, dtype);
  check.input(1, "tokens", rows, DType::I32);
  check.output(0, "gw", v * h);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).accumulate;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      if (!accumulate)
        parallel.ranges(v * h, 4, [=](int64_t begin, int64_t end) {
          std::memset(floats(p[2]) + begin, 0, (end - begin) * sizeof(float));
        });
      // Threads share columns, not tokens: each sum is in the order of tokens.
      parallel.ranges(
          h, 12 * rows,
          [=](int64_t begin, int64_t end) {
            for (int64_t r = 0; r < rows; ++r) {
              int64_t row = tokens(p[1])[r] - offset;
              if (row < 0 || row >= v)
                continue;
              float *g = floats(p[2]) + row * h + begin;
              kernel(as<T>(p[0]) + r * h + begin, g, end - begin);
            }
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareRmsNorm(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::RmsNorm, call);
  if (!check.ok())
    return check.error();
  int64_t h = check.arg(0, "H");
  int64_t rows = check.rowsOfInput(0, "x", h);
  DType dtype = check.storage(0, "x");
  check.input(0, "x", rows * h, dtype);
  check.input(1, "w", h, dtype);
  check.output(0, "y", rows * h, dtype);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rmsNorm;
    float eps = static_cast<float>(call.floats[0]);
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(rows, 8 * h, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * h, as<T>(p[1]), as<T>(p[2]) + begin * h,
               end - begin, h, eps);
      });
      return Status::success();
    });
  });
}

Prepared prepareRmsNormGradInput(const CpuContext &ctx,
                                 const KernelCall &call) {
  CallCheck check(Kernel::RmsNormGradInput, call);
  if (!check.ok())
    return check.error();
  int64_t h = check.arg(0, "H");
  int64_t rows = check.rowsOfInput(0, "dy", h);
  DType dtype = check.storage(0, "dy");
  check.input(0, "dy", rows * h, dtype);
  check.input(1, "x", rows * h, dtype);
  check.input(2, "w", h, dtype);
  check.output(0, "dx", rows * h, dtype);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rmsNormGradInput;
    float eps = static_cast<float>(call.floats[0]);
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(rows, 12 * h, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * h, as<T>(p[1]) + begin * h, as<T>(p[2]),
               as<T>(p[3]) + begin * h, end - begin, h, eps);
      });
      return Status::success();
    });
  });
}

Prepared prepareRmsNormGradWeight(const CpuContext &ctx,
                                  const KernelCall &call) {
  CallCheck check(Kernel::RmsNormGradWeight, call);
  if (!check.ok())
    return check.error();
  int64_t h = check.arg(0, "H");
  bool accumulate = check.flag(1, "ACC");
  int64_t rows = check.rowsOfInput(0, "dy", h);
  DType dtype = check.storage(0, "dy");
  check.input(0, "dy", rows * h, dtype);
  check.input(1, "x", rows * h, dtype);
  check.output(0, "gw", h);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rmsNormGradWeight;
    auto inverse = kernelsOf<T>(ctx.rows).rmsInverse;
    float eps = static_cast<float>(call.floats[0]);
    ctx.workspace.reserve(rows * static_cast<int64_t>(sizeof(float)));
    return makePrepared(call, [=, parallel = ctx.parallel,
                               &workspace = ctx.workspace](void *const *p) {
      float *rstd = workspace.floats();
      parallel.ranges(rows, 4 * h, [=](int64_t begin, int64_t end) {
        inverse(as<T>(p[1]) + begin * h, rstd + begin, end - begin, h, eps);
      });
      parallel.ranges(
          h, 8 * rows,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]), as<T>(p[1]), rstd, floats(p[2]), rows, h, begin,
                   end, accumulate);
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareSwiglu(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::Swiglu, call);
  if (!check.ok())
    return check.error();
  int64_t f = check.arg(0, "F");
  int64_t n = check.rowsOfInput(0, "gate", f) * f;
  DType dtype = check.storage(0, "gate");
  check.input(0, "gate", n, dtype);
  check.input(1, "up", n, dtype);
  check.output(0, "y", n, dtype);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).swiglu;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          n, 24,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]) + begin, as<T>(p[1]) + begin,
                   as<T>(p[2]) + begin, end - begin);
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareSwigluGrad(const CpuContext &ctx, const KernelCall &call) {
  CallCheck check(Kernel::SwigluGrad, call);
  if (!check.ok())
    return check.error();
  int64_t f = check.arg(0, "F");
  int64_t n = check.rowsOfInput(0, "dy", f) * f;
  DType dtype = check.storage(0, "dy");
  check.input(0, "dy", n, dtype);
  check.input(1, "gate", n, dtype);
  check.input(2, "up", n, dtype);
  check.output(0, "dgate", n, dtype);
  check.output(1, "dup", n, dtype);
  if (!check.ok())
    return check.error();
  return withStorage(dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).swigluGrad;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          n, 32,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]) + begin, as<T>(p[1]) + begin,
                   as<T>(p[2]) + begin, as<T>(p[3]) + begin,
                   as<T>(p[4]) + begin, end - begin);
          },
          cut);
      return Status::success();
    });
  });
}

} // namespace reckon::device
