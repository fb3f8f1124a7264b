//===- BlockedMatmul.cpp - bf16 and fp8 products from f32 ones ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/BlockedMatmul.h"
#include "runtime/device/kernels/Fp8.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace reckon::device {

namespace {

/// Rows and columns of a block. Large enough that widening is a hundredth of
/// the work, small enough that three of them stay in a cache of 12 MiB.
constexpr int64_t block = 1024;

int64_t lastOf(int64_t n) { return (n - 1) % block + 1; }

/// An operand in memory: rows x columns, row-major; of fp8, padded columns.
struct Stored {
  const void *data;
  int64_t columns;
  DType dtype;
};

/// The values of all codes of a format.
template <Fp8 format> const std::array<float, 256> &fp8Values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> made;
    for (int code = 0; code < 256; ++code)
      made[static_cast<size_t>(code)] =
          fromFp8<format>(static_cast<uint8_t>(code));
    return made;
  }();
  return values;
}

class BlockedMatmul final : public Matmul {
public:
  BlockedMatmul(const MatmulShape &shape, const BlockedContext &ctx)
      : shape_(shape), ctx_(ctx) {}

  /// The f32 products for whole and last blocks of m, n and k, to start and to
  /// go on with a sum.
  Status prepare() {
    for (int last = 0; last < 8; ++last)
      for (int more = 0; more < 2; ++more) {
        auto size = [&](int64_t n, int bit) {
          return last & bit ? lastOf(n) : std::min(n, block);
        };
        MatmulShape part{.m = size(shape_.m, 4),
                         .n = size(shape_.n, 2),
                         .k = size(shape_.k, 1),
                         .transposeA = shape_.transposeA,
                         .transposeB = shape_.transposeB,
                         .accumulate = more == 1};
        Result<Matmul *> made = ctx_.products.get(part);
        if (!made)
          return made.error();
        products_[last][more] = *made;
        ctx_.blocks.reserve(3 * block * block *
                            static_cast<int64_t>(sizeof(float)));
      }
    return Status::success();
  }

  Status run(const void *a, const void *b, void *c, float factor) override {
    float *roomA = ctx_.blocks.floats();
    float *roomB = roomA + block * block, *sums = roomB + block * block;
    Stored left =
        stored(a, shape_.from, shape_.transposeA ? shape_.m : shape_.k);
    Stored right =
        stored(b, shape_.fromB, shape_.transposeB ? shape_.k : shape_.n);
    for (int64_t i = 0; i < shape_.m; i += block)
      for (int64_t j = 0; j < shape_.n; j += block) {
        int64_t m = std::min(block, shape_.m - i);
        int64_t n = std::min(block, shape_.n - j);
        for (int64_t l = 0; l < shape_.k; l += block) {
          int64_t k = std::min(block, shape_.k - l);
          shape_.transposeA ? widen(left, l, i, k, m, roomA)
                            : widen(left, i, l, m, k, roomA);
          shape_.transposeB ? widen(right, j, l, n, k, roomB)
                            : widen(right, l, j, k, n, roomB);
          int last = (i + block >= shape_.m ? 4 : 0) +
                     (j + block >= shape_.n ? 2 : 0) +
                     (l + block >= shape_.k ? 1 : 0);
          RECKON_TRY(products_[last][l > 0]->run(roomA, roomB, sums));
        }
        finish(sums, c, i, j, m, n, factor);
      }
    return Status::success();
  }

private:
  static Stored stored(const void *data, DType dtype, int64_t columns) {
    return {data, dtype == DType::BF16 ? columns : fp8Padded(columns), dtype};
  }

  void widen(const Stored &from, int64_t row, int64_t column, int64_t rows,
             int64_t columns, float *to) {
    int64_t first = row * from.columns + column;
    auto kernel = ctx_.rows.widen;
    const std::array<float, 256> &values = from.dtype == DType::F8E5M2
                                               ? fp8Values<Fp8::E5M2>()
                                               : fp8Values<Fp8::E4M3>();
    ctx_.parallel.ranges(
        rows, 6 * columns, [=, &values](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) {
            int64_t at = first + r * from.columns;
            if (from.dtype == DType::BF16) {
              kernel(static_cast<const Bf16 *>(from.data) + at,
                     to + r * columns, columns);
              continue;
            }
            const uint8_t *codes = static_cast<const uint8_t *>(from.data) + at;
            for (int64_t i = 0; i < columns; ++i)
              to[r * columns + i] = values[codes[i]];
          }
        });
  }

  /// Puts a finished block of sums, times a factor, into place.
  void finish(float *sums, void *c, int64_t i, int64_t j, int64_t m, int64_t n,
              float factor) {
    int64_t first = i * shape_.n + j, ld = shape_.n;
    const RowKernels &rows = ctx_.rows;
    bool round = shape_.to == DType::BF16, accumulate = shape_.accumulate;
    ctx_.parallel.ranges(m, 8 * n, [=, &rows](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        float *from = sums + r * n;
        if (factor != 1.0f)
          for (int64_t l = 0; l < n; ++l)
            from[l] *= factor;
        if (round) {
          rows.narrow(from, static_cast<Bf16 *>(c) + first + r * ld, n);
          continue;
        }
        float *to = static_cast<float *>(c) + first + r * ld;
        if (accumulate)
          rows.f32.accumulate(from, to, n);
        else
          std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
      }
    });
  }

  MatmulShape shape_;
  BlockedContext ctx_;
  Matmul *products_[8][2] = {};
};

} // namespace

Result<std::unique_ptr<Matmul>> makeBlockedMatmul(const MatmulShape &shape,
                                                  const BlockedContext &ctx) {
  auto made = std::make_unique<BlockedMatmul>(shape, ctx);
  Status status = made->prepare();
  if (!status.ok())
    return status.error();
  return std::unique_ptr<Matmul>(std::move(made));
}

} // namespace reckon::device
