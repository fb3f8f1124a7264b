//===- PrepareFp8.cpp - largest magnitude, fp8 casts and products ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Fp8.h"
#include "runtime/device/kernels/Prepare.h"

#include <algorithm>
#include <cstring>

namespace reckon::device {

namespace {

/// Elements of one task of amax.
constexpr int64_t chunk = 1 << 16;

/// The largest magnitude of a part, as the bits of a bf16 without its sign. As
/// integers they are in the order of the magnitudes, with NaN above infinity.
uint32_t largestBits(const uint16_t *x, int64_t n) {
  uint16_t most = 0;
  for (int64_t i = 0; i < n; ++i)
    most = std::max<uint16_t>(most, x[i] & 0x7fffu);
  return most;
}

/// One thread's share of a cast: rows [begin, end) of x, in squares of a block,
/// so that neither side is written across cache lines.
template <Fp8 format> struct Cast {
  const uint16_t *x;              // bf16
  uint8_t *straight, *transposed; // null where not wanted
  int64_t rows, columns;
  float inverse;

  void square(int64_t row, int64_t column) const {
    for (int64_t r = row; r < row + fp8Block; ++r)
      for (int64_t c = column; c < column + fp8Block; ++c) {
        uint8_t code = 0;
        if (r < rows && c < columns)
          code = toFp8<format>(
              floatOf(static_cast<uint32_t>(x[r * columns + c]) << 16) *
              inverse);
        if (straight)
          straight[r * fp8Padded(columns) + c] = code;
        if (transposed)
          transposed[c * fp8Padded(rows) + r] = code;
      }
  }
};

template <Fp8 format>
Prepared prepareCast(const CpuContext &ctx, const KernelCall &call,
                     const CastFp8Call &cast) {
  return makePrepared(call, [cast, parallel = ctx.parallel](void *const *p) {
    float scale = fp8Scale<format>(floats(p[1])[0]);
    floats(p[2])[0] = scale;
    Cast<format> work{as<uint16_t>(p[0]),
                      cast.straight ? as<uint8_t>(p[3]) : nullptr,
                      cast.transposed ? as<uint8_t>(p[cast.straight ? 4 : 3])
                                      : nullptr,
                      cast.rows,
                      cast.columns,
                      1.0f / scale};
    parallel.ranges(fp8Padded(cast.rows) / fp8Block,
                    4 * fp8Block * cast.columns,
                    [=](int64_t begin, int64_t end) {
                      for (int64_t r = begin; r < end; ++r)
                        for (int64_t c = 0; c < cast.columns; c += fp8Block)
                          work.square(r * fp8Block, c);
                    });
    return Status::success();
  });
}

} // namespace

Prepared prepareAmax(const CpuContext &ctx, const KernelCall &call) {
  Result<AmaxCall> parsed = parseAmax(call);
  if (!parsed)
    return parsed.error();
  int64_t n = parsed->n, chunks = (n + chunk - 1) / chunk;
  ctx.workspace.reserve(chunks * static_cast<int64_t>(sizeof(uint32_t)));
  return makePrepared(call, [=, parallel = ctx.parallel,
                             &workspace = ctx.workspace](void *const *p) {
    auto *parts = static_cast<uint32_t *>(workspace.data());
    parallel.tasks(chunks, [=](int64_t task, int) {
      int64_t begin = task * chunk;
      parts[task] =
          largestBits(as<uint16_t>(p[0]) + begin, std::min(chunk, n - begin));
    });
    uint32_t most = 0;
    for (int64_t i = 0; i < chunks; ++i)
      most = std::max(most, parts[i]);
    floats(p[1])[0] = floatOf(most << 16);
    return Status::success();
  });
}

Prepared prepareCastFp8(const CpuContext &ctx, const KernelCall &call) {
  Result<CastFp8Call> parsed = parseCastFp8(call);
  if (!parsed)
    return parsed.error();
  return parsed->codes == DType::F8E5M2
             ? prepareCast<Fp8::E5M2>(ctx, call, *parsed)
             : prepareCast<Fp8::E4M3>(ctx, call, *parsed);
}

Prepared prepareLinearFp8(const CpuContext &ctx, const KernelCall &call) {
  Result<LinearFp8Call> parsed = parseLinearFp8(call);
  if (!parsed)
    return parsed.error();
  Result<Matmul *> matmul = ctx.matmuls.get({.m = parsed->m,
                                             .n = parsed->n,
                                             .k = parsed->k,
                                             .from = parsed->a,
                                             .to = parsed->to,
                                             .transposeB = true,
                                             .accumulate = parsed->accumulate,
                                             .fromB = parsed->b});
  if (!matmul)
    return matmul.error();
  return makePrepared(call, [product = *matmul](void *const *p) {
    return product->run(p[0], p[2], p[4], floats(p[1])[0] * floats(p[3])[0]);
  });
}

} // namespace reckon::device
