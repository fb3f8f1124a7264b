//===- ColumnMajorTest.cpp - our products as those of cuBLASLt ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt needs a GPU; that its operands mean what ours mean does not.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/ColumnMajor.h"

#include <gtest/gtest.h>

#include <vector>

using namespace reckon::cuda;

namespace {

/// Small whole numbers, all products and sums of which are exact.
std::vector<float> numbers(int64_t count, int seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>((i * 7 + static_cast<size_t>(seed)) % 11) - 5.0f;
  return values;
}

/// What Matmul.h says, element by element.
std::vector<float> ours(const MatmulShape &s, const std::vector<float> &a,
                        const std::vector<float> &b) {
  std::vector<float> c(static_cast<size_t>(s.m * s.n));
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j)
      for (int64_t l = 0; l < s.k; ++l)
        c[static_cast<size_t>(i * s.n + j)] +=
            a[static_cast<size_t>(s.transposeA ? l * s.m + i : i * s.k + l)] *
            b[static_cast<size_t>(s.transposeB ? j * s.k + l : l * s.n + j)];
  return c;
}

float at(const ColumnMajor &matrix, const std::vector<float> &values, int64_t i,
         int64_t j) {
  if (matrix.transposed)
    std::swap(i, j);
  return values[static_cast<size_t>(i + j * matrix.rows)];
}

/// What cuBLASLt documents: C = op(A) * op(B), column-major.
std::vector<float> theirs(const ColumnMajorProduct &p,
                          const std::vector<float> &a,
                          const std::vector<float> &b) {
  std::vector<float> c(static_cast<size_t>(p.c.rows * p.c.columns));
  int64_t k = p.a.transposed ? p.a.rows : p.a.columns;
  EXPECT_EQ(k, p.b.transposed ? p.b.columns : p.b.rows);
  for (int64_t i = 0; i < p.c.rows; ++i)
    for (int64_t j = 0; j < p.c.columns; ++j)
      for (int64_t l = 0; l < k; ++l)
        c[static_cast<size_t>(i + j * p.c.rows)] +=
            at(p.a, a, i, l) * at(p.b, b, l, j);
  return c;
}

TEST(ColumnMajor, GivesTheSameProduct) {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true}) {
      MatmulShape shape;
      shape.m = 3, shape.n = 5, shape.k = 4;
      shape.transposeA = transposeA;
      shape.transposeB = transposeB;
      auto a = numbers(shape.m * shape.k, 1), b = numbers(shape.k * shape.n, 2);
      ColumnMajorProduct product = columnMajor(shape);
      // cuBLASLt's first operand is our second.
      EXPECT_EQ(theirs(product, b, a), ours(shape, a, b));
      // A matrix read the other way around is another product.
      product.a = {product.a.columns, product.a.rows, !product.a.transposed};
      EXPECT_NE(theirs(product, b, a), ours(shape, a, b));
    }
}

TEST(ColumnMajor, EightBitProductsAreTransposedAndNot) {
  MatmulShape shape;
  shape.m = 16, shape.n = 32, shape.k = 48, shape.transposeB = true;
  ColumnMajorProduct product = columnMajor(shape);
  EXPECT_TRUE(product.a.transposed);
  EXPECT_FALSE(product.b.transposed);
}

} // namespace
