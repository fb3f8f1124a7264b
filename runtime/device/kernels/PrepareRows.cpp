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
  auto parsed = parseFillZero(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
    parallel.ranges(c.bytes, 1, [=](int64_t begin, int64_t end) {
      std::memset(static_cast<char *>(p[0]) + begin, 0, end - begin);
    });
    return Status::success();
  });
}

Prepared prepareCopy(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseCopy(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
    parallel.ranges(c.bytes, 2, [=](int64_t begin, int64_t end) {
      std::memcpy(static_cast<char *>(p[1]) + begin,
                  static_cast<char *>(p[0]) + begin, end - begin);
    });
    return Status::success();
  });
}

Prepared prepareAdd(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseAdd(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).add;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          c.n, 12,
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
  auto parsed = parseEmbedding(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 8 * c.h, [=](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          int64_t row = tokens(p[0])[r] - c.offset;
          T *y = as<T>(p[2]) + r * c.h;
          if (row >= 0 && row < c.v)
            std::memcpy(y, as<T>(p[1]) + row * c.h, c.h * sizeof(T));
          else
            std::memset(y, 0, c.h * sizeof(T));
        }
      });
      return Status::success();
    });
  });
}

Prepared prepareEmbeddingGrad(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseEmbeddingGrad(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).accumulate;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      if (!c.accumulate)
        parallel.ranges(c.v * c.h, 4, [=](int64_t begin, int64_t end) {
          std::memset(floats(p[2]) + begin, 0, (end - begin) * sizeof(float));
        });
      // Threads share columns, not tokens: each sum is in the order of tokens.
      parallel.ranges(
          c.h, 12 * c.rows,
          [=](int64_t begin, int64_t end) {
            for (int64_t r = 0; r < c.rows; ++r) {
              int64_t row = tokens(p[1])[r] - c.offset;
              if (row < 0 || row >= c.v)
                continue;
              float *g = floats(p[2]) + row * c.h + begin;
              kernel(as<T>(p[0]) + r * c.h + begin, g, end - begin);
            }
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareRmsNorm(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseRmsNorm(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rmsNorm;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 8 * c.h, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.h, as<T>(p[1]),
               as<T>(p[2]) + begin * c.h, end - begin, c.h, c.eps);
      });
      return Status::success();
    });
  });
}

Prepared prepareRmsNormGradInput(const CpuContext &ctx,
                                 const KernelCall &call) {
  auto parsed = parseRmsNormGradInput(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rmsNormGradInput;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(c.rows, 12 * c.h, [=](int64_t begin, int64_t end) {
        kernel(as<T>(p[0]) + begin * c.h, as<T>(p[1]) + begin * c.h,
               as<T>(p[2]), as<T>(p[3]) + begin * c.h, end - begin, c.h, c.eps);
      });
      return Status::success();
    });
  });
}

Prepared prepareRmsNormGradWeight(const CpuContext &ctx,
                                  const KernelCall &call) {
  auto parsed = parseRmsNormGradWeight(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).rmsNormGradWeight;
    auto inverse = kernelsOf<T>(ctx.rows).rmsInverse;
    ctx.workspace.reserve(c.rows * static_cast<int64_t>(sizeof(float)));
    return makePrepared(call, [=, parallel = ctx.parallel,
                               &workspace = ctx.workspace](void *const *p) {
      float *rstd = workspace.floats();
      parallel.ranges(c.rows, 4 * c.h, [=](int64_t begin, int64_t end) {
        inverse(as<T>(p[1]) + begin * c.h, rstd + begin, end - begin, c.h,
                c.eps);
      });
      parallel.ranges(
          c.h, 8 * c.rows,
          [=](int64_t begin, int64_t end) {
            kernel(as<T>(p[0]), as<T>(p[1]), rstd, floats(p[2]), c.rows, c.h,
                   begin, end, c.accumulate);
          },
          cut);
      return Status::success();
    });
  });
}

Prepared prepareSwiglu(const CpuContext &ctx, const KernelCall &call) {
  auto parsed = parseSwiglu(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).swiglu;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          c.n, 24,
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
  auto parsed = parseSwigluGrad(call);
  if (!parsed)
    return parsed.error();
  const auto c = *parsed;
  return withStorage(c.dtype, [&](auto stored) -> Prepared {
    using T = decltype(stored);
    auto kernel = kernelsOf<T>(ctx.rows).swigluGrad;
    return makePrepared(call, [=, parallel = ctx.parallel](void *const *p) {
      parallel.ranges(
          c.n, 32,
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
