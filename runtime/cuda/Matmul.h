//===- Matmul.h - matrix products on a CUDA device ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The seam between the plan's linear kernels and who multiplies: a library on a
// GPU, the CPU device's products under emulation.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_MATMUL_H
#define RECKON_RUNTIME_CUDA_MATMUL_H

#include "runtime/base/Status.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/device/Kernels.h"

#include <memory>

namespace reckon::cuda {

/// c[m, n] = (or +=) a[m, k] * b[k, n], summed in f32 whatever the types, a
/// bf16 result rounded once. All are row-major and dense; a transposed operand
/// lies in memory as its transpose: a as [k, m], b as [n, k].
///
/// a and b are both f32 (true f32 products, no TF32) with c f32, or both bf16
/// with c bf16 or f32, or each of an 8-bit type with c bf16 or f32. 8-bit
/// operands come with their dequantisation scales (MatmulOperands), are
/// multiplied with transposeB alone set, and have k, and rows of m and n, of
/// multiples of 16. `accumulate` needs c f32. No size is 0.
struct MatmulShape {
  int64_t m = 0, n = 0, k = 0;
  device::DType a = device::DType::F32, b = device::DType::F32,
                c = device::DType::F32;
  bool transposeA = false, transposeB = false, accumulate = false;
  auto operator<=>(const MatmulShape &) const = default;
};

/// Device addresses. Every element of an 8-bit operand is multiplied by the
/// f32 at its scale, before or after the sum; null for other types.
struct MatmulOperands {
  const void *a = nullptr, *b = nullptr;
  void *c = nullptr;
  const float *scaleA = nullptr, *scaleB = nullptr;
};

/// One product of a fixed shape. It must not outlive its Matmul.
class PreparedMatmul {
public:
  virtual ~PreparedMatmul() = default;
  /// Enqueues on `stream`, which is that of the plan stream it was prepared
  /// for; allocates nothing unless it fails. Equal operands give equal bits.
  virtual Status run(const MatmulOperands &operands, cudaStream_t stream) = 0;
};

/// Somebody who multiplies.
class Matmul {
public:
  virtual ~Matmul() = default;
  /// Gets a product ready for a stream of the plan: products of one stream run
  /// one after the other and may share scratch. Incompatible if this
  /// implementation cannot compute the shape.
  virtual Result<std::unique_ptr<PreparedMatmul>>
  prepare(const MatmulShape &shape, int planStream) = 0;
};

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_MATMUL_H
