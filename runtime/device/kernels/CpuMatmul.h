//===- CpuMatmul.h - matrix products by oneDNN, behind one file -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_CPUMATMUL_H
#define RECKON_RUNTIME_DEVICE_KERNELS_CPUMATMUL_H

#include "runtime/base/Status.h"
#include "runtime/device/Kernels.h"
#include "runtime/device/kernels/Parallel.h"
#include "runtime/device/kernels/RowKernels.h"
#include "runtime/device/kernels/Workspace.h"

#include <memory>

namespace reckon::device {

/// c[m, n] = (or +=) a[m, k] * b[k, n], summed in f32. A transposed operand
/// lies in memory as its transpose, row-major. a is stored as `from`, b as
/// `fromB`, c as `to`: f32 and f32, bf16 and bf16, or bf16 and f32; a bf16
/// result is rounded once. Operands of f8e4m3 or f8e5m2 have k inside and their
/// rows padded to whole blocks of codes: a not transposed, b transposed.
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  DType from = DType::F32, to = DType::F32;
  bool transposeA = false, transposeB = false, accumulate = false;
  DType fromB = from;
  auto operator<=>(const MatmulShape &) const = default;
};

/// One product of a fixed shape.
class Matmul {
public:
  virtual ~Matmul() = default;
  /// `factor` multiplies the finished sums of a product of fp8 operands; other
  /// products take 1 only.
  virtual Status run(const void *a, const void *b, void *c,
                     float factor = 1.0f) = 0;
};

/// Makes products and keeps one for each shape.
class MatmulCache {
public:
  /// Limits oneDNN to `isa` too, so that a variant means the same everywhere.
  /// Only the first cache of a process can do so; later ones keep its limit.
  ///
  /// bf16 products are oneDNN's where the processor has them (AVX512_BF16) and
  /// `isa` allows them; elsewhere their operands are widened block by block and
  /// multiplied in f32, which rounds the same. Those of fp8 always are.
  static std::unique_ptr<MatmulCache> create(Workspace &workspace, Isa isa,
                                             Parallel parallel);
  virtual ~MatmulCache() = default;
  /// The product of this shape; lives as long as the cache. The number of
  /// threads is that of the first request.
  virtual Result<Matmul *> get(const MatmulShape &shape) = 0;
  /// Bytes that widened blocks take beside the workspace.
  virtual int64_t blockBytes() const = 0;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_CPUMATMUL_H
