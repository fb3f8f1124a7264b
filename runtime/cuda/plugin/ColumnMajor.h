//===- ColumnMajor.h - our products as those of cuBLASLt ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt's matrices are column-major and ours row-major, so each of ours is
// the transpose of its own, and c = a * b is computed as c' = b' * a':
//
//   cuBLASLt's    is our   as it lies in memory   which is column-major
//   A (M x K)     b        [k, n]                 n x k, used as it is
//                          [n, k] (transposeB)    k x n, transposed
//   B (K x N)     a        [m, k]                 k x m, used as it is
//                          [k, m] (transposeA)    m x k, transposed
//   C, D (M x N)  c        [m, n]                 n x m
//
// with M = n, N = m and K = k. A linear's forward is "TN", its gradient of the
// input "NN" and that of the weight "NT".
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_COLUMNMAJOR_H
#define RECKON_RUNTIME_CUDA_PLUGIN_COLUMNMAJOR_H

#include "runtime/cuda/Matmul.h"

namespace reckon::cuda {

/// A dense column-major matrix: element (i, j) lies at i + j * rows. A
/// transposed one is used as its transpose.
struct ColumnMajor {
  int64_t rows = 0, columns = 0;
  bool transposed = false;
};

/// c = op(a) * op(b); a is the second operand of our product.
struct ColumnMajorProduct {
  ColumnMajor a, b, c;
};

inline ColumnMajorProduct columnMajor(const MatmulShape &s) {
  return {
      s.transposeB ? ColumnMajor{s.k, s.n, true} : ColumnMajor{s.n, s.k, false},
      s.transposeA ? ColumnMajor{s.m, s.k, true} : ColumnMajor{s.k, s.m, false},
      {s.n, s.m, false}};
}

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGIN_COLUMNMAJOR_H
