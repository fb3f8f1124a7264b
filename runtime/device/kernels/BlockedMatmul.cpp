//===- BlockedMatmul.cpp - bf16 products from f32 ones --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/BlockedMatmul.h"

#include <algorithm>
#include <cstring>

namespace reckon::device {

namespace {

/// Rows and columns of a block. Large enough that widening is a hundredth of
/// the work, small enough that three of them stay in a cache of 12 MiB.
constexpr int64_t block = 1024;

int64_t lastOf(int64_t n) { return (n - 1) % block + 1; }

/// An operand in memory: rows x columns, row-major.
struct Stored {
  const Bf16 *data;
  int64_t columns;
};

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

  Status run(const void *a, const void *b, void *c) override {
    float *roomA = ctx_.blocks.floats();
    float *roomB = roomA + block * block, *sums = roomB + block * block;
    Stored left{static_cast<const Bf16 *>(a),
                shape_.transposeA ? shape_.m : shape_.k};
    Stored right{static_cast<const Bf16 *>(b),
                 shape_.transposeB ? shape_.k : shape_.n};
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
        finish(sums, c, i, j, m, n);
      }
    return Status::success();
  }

private:
  void widen(const Stored &from, int64_t row, int64_t column, int64_t rows,
             int64_t columns, float *to) {
    const Bf16 *first = from.data + row * from.columns + column;
    auto kernel = ctx_.rows.widen;
    ctx_.parallel.ranges(rows, 6 * columns, [=](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        kernel(first + r * from.columns, to + r * columns, columns);
    });
  }

  /// Puts a finished block of sums into place.
  void finish(const float *sums, void *c, int64_t i, int64_t j, int64_t m,
              int64_t n) {
    int64_t first = i * shape_.n + j, ld = shape_.n;
    const RowKernels &rows = ctx_.rows;
    bool round = shape_.to == DType::BF16, accumulate = shape_.accumulate;
    ctx_.parallel.ranges(m, 8 * n, [=, &rows](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float *from = sums + r * n;
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
