//===- CpuMatmul.h - matrix products by oneDNN, behind one file -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_CPUMATMUL_H
#define RECKON_RUNTIME_DEVICE_KERNELS_CPUMATMUL_H

#include "runtime/base/Status.h"
#include "runtime/device/kernels/RowKernels.h"
#include "runtime/device/kernels/Workspace.h"

#include <memory>

namespace reckon::device {

/// c[m, n] = (or +=) a[m, k] * b[k, n] in f32. A transposed operand lies in
/// memory as its transpose, row-major.
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  bool transposeA = false, transposeB = false, accumulate = false;
  auto operator<=>(const MatmulShape &) const = default;
};

/// One product of a fixed shape.
class Matmul {
public:
  virtual ~Matmul() = default;
  virtual Status run(const float *a, const float *b, float *c) = 0;
};

/// Makes products and keeps one for each shape.
class MatmulCache {
public:
  /// Limits oneDNN to `isa` too, so that a variant means the same everywhere.
  /// Only the first cache of a process can do so; later ones keep its limit.
  static std::unique_ptr<MatmulCache> create(Workspace &workspace, Isa isa);
  virtual ~MatmulCache() = default;
  /// The product of this shape; lives as long as the cache. The number of
  /// threads is that of the first request.
  virtual Result<Matmul *> get(const MatmulShape &shape) = 0;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_CPUMATMUL_H
