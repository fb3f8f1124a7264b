//===- Attention.h - attention on a CUDA device ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The seam between the plan's attention kernels and who computes them: our own
// kernels, which run everywhere (also emulated), or a library. The operands
// are those of runtime/device/Kernels.h: token-major, causal, scale 1/sqrt(D),
// query head h reads key head h / (Hq/Hkv), lse in natural logarithms.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_ATTENTION_H
#define RECKON_RUNTIME_CUDA_ATTENTION_H

#include "runtime/base/Status.h"
#include "runtime/cuda/Cuda.h"
#include "runtime/device/kernels/Calls.h"

#include <memory>

namespace reckon::cuda {

/// One call's sizes: `batch` sequences of s tokens, hq query heads on hkv key
/// heads of d elements. All operands but the statistics are stored as `dtype`.
using AttentionShape = device::AttentionCall;

/// Device addresses. q and o are [batch, s, hq, d], k and v are
/// [batch, s, hkv, d], lse is f32 [batch, hq, s].
struct AttentionForward {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void *o = nullptr;
  float *lse = nullptr;
};

/// Device addresses, shaped as above; delta is scratch of lse's shape.
struct AttentionBackward {
  const void *dO = nullptr, *q = nullptr, *k = nullptr, *v = nullptr;
  const void *o = nullptr;
  const float *lse = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  float *delta = nullptr;
};

/// One direction for one shape: Operands is AttentionForward or
/// AttentionBackward. It must not outlive its Attention.
template <typename Operands> class PreparedAttention {
public:
  virtual ~PreparedAttention() = default;
  /// Enqueues on `stream`, which is that of the plan stream it was prepared
  /// for; allocates nothing unless it fails.
  virtual Status run(const Operands &operands, cudaStream_t stream) = 0;
};
template <typename Operands>
using AttentionResult = Result<std::unique_ptr<PreparedAttention<Operands>>>;

/// Somebody who computes attention.
class Attention {
public:
  virtual ~Attention() = default;
  /// Gets a direction ready for a stream of the plan: calls of one stream run
  /// one after the other and may share scratch. Incompatible if this
  /// implementation cannot compute the shape.
  virtual AttentionResult<AttentionForward>
  prepareForward(const AttentionShape &shape, int planStream) = 0;
  virtual AttentionResult<AttentionBackward>
  prepareBackward(const AttentionShape &shape, int planStream) = 0;
};

/// Our own kernels: f32 and bf16 storage, any s, d up to 256, arithmetic in
/// f32, no scratch beside delta, equal bits on every run.
class OwnAttention final : public Attention {
public:
  AttentionResult<AttentionForward> prepareForward(const AttentionShape &shape,
                                                   int planStream) override;
  AttentionResult<AttentionBackward>
  prepareBackward(const AttentionShape &shape, int planStream) override;
};

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_ATTENTION_H
