//===- Kernels.h - the operand conventions of every kernel ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A plan names a kernel, its operands and its constants; every device runs it
// under the conventions below. Operands are row-major and dense. T is the
// number of local tokens (rows), T = b * S with b sequences of S tokens. ACC is
// 0 to overwrite the result and 1 to add to it. "in place" means that the first
// output may be the first input (or the operand named).
//
// Activations and parameters are all f32 or all bf16 in one call. Weight
// gradients (gw), the rotary table, statistics (lse, delta, max, sums) and the
// optimizer's operands are f32 always, blocks are f64. Arithmetic and sums are
// f32 or wider whatever the type of the operands, and a bf16 result is rounded
// once, to nearest even.
//
//   kernel                inputs -> outputs; args; floats
//   fill_zero             -> x (any dtype)
//   copy                  x -> y (any dtype)
//   add                   a, b -> c; in place with a or b
//   embedding             tokens i32[T], weight[V,H] -> y[T,H];
//                         args V, H, vocab_offset. Rows of tokens outside
//                         [offset, offset + V) are zero: a partial result of a
//                         vocabulary-parallel table.
//   embedding_grad        dy[T,H], tokens i32[T] -> gw[V,H];
//                         args V, H, vocab_offset, ACC
//   rms_norm              x[T,H], w[H] -> y[T,H]; args H; floats eps
//   rms_norm_grad_input   dy[T,H], x[T,H], w[H] -> dx[T,H]; args H;
//                         floats eps; in place with dy
//   rms_norm_grad_weight  dy[T,H], x[T,H] -> gw[H]; args H, ACC; floats eps
//   linear                x[T,K], w[N,K] -> y[T,N]; args N, K
//   linear_grad_input     dy[T,N], w[N,K] -> dx[T,K]; args N, K
//   linear_grad_weight    dy[T,N], x[T,K] -> gw[N,K]; args N, K, ACC
//   rope                  x[T,heads*D], table[S,D] -> y[T,heads*D];
//                         args heads, D, S, inverse. Half-split rotation (that
//                         of Hugging Face's Llama): element i < D/2 of a head
//                         pairs with i + D/2. Row r has position r mod S.
//                         inverse 1 rotates back, which is the gradient.
//                         in place. RopeTable.h fills the table.
//   attention             q[T,Hq*D], k[T,Hkv*D], v[T,Hkv*D]
//                         -> o[T,Hq*D], lse[b,Hq,S]; args Hq, Hkv, D, S.
//                         Causal, scale 1/sqrt(D); query head h reads key head
//                         h / (Hq/Hkv). lse is the log-sum-exp of the scaled
//                         scores. S x S scores are never held.
//   attention_grad        do[T,Hq*D], q, k, v, o, lse
//                         -> dq[T,Hq*D], dk[T,Hkv*D], dv[T,Hkv*D],
//                         delta[b,Hq,S] (scratch: row sums of do * o);
//                         args Hq, Hkv, D, S
//   swiglu                gate[T,F], up[T,F] -> y[T,F]; args F
//                         y = gate * sigmoid(gate) * up
//   swiglu_grad           dy[T,F], gate[T,F], up[T,F]
//                         -> dgate[T,F], dup[T,F]; args F; each output may be
//                         any of the inputs
//   cross_entropy_max     logits[T,V] -> max[T]; args V, valid. Only the first
//                         `valid` of this shard's V columns are words, the
//                         others are padding and never win; -inf if valid = 0.
//   cross_entropy_sum     logits[T,V], targets i32[T], max[T] -> sums[2,T];
//                         args V, valid, vocab_offset. max is over all shards.
//                         Row 0: sum of exp(logit - max) over valid columns;
//                         row 1: target's logit - max if the target lies in
//                         [offset, offset + valid), else 0.
//   cross_entropy_loss    sums[2,T], max[T] -> lse[T], metrics f64[M];
//                         args OWNER. sums over all shards; lse = max +
//                         log(row 0). Owner: metrics[0] += sum over rows of
//                         log(row 0) - row 1, in nats; others add nothing.
//   cross_entropy_grad    logits[T,V], targets i32[T], lse[T] -> dlogits[T,V];
//                         args V, valid, vocab_offset; floats scale.
//                         (exp(logit - lse) - [column is target]) * scale;
//                         padding columns get exactly 0; in place
//   sum_squares           x[n] -> metrics f64[M]; args OWNER.
//                         Owner: metrics[1] += sum of x^2, in f64
//   clip_factor           -> metrics f64[M]; floats clip. metrics[3] =
//                         sqrt(metrics[1]), metrics[2] = min(1, clip /
//                         (metrics[3] + 1e-6)), or 1 when clip <= 0
//   adamw                 grad[n], metrics f64[M], scalars f64[K]
//                         -> main[n], m[n], v[n] (all three read and written),
//                         optionally param bf16[n], the rounded main weights;
//                         floats beta1, beta2, eps, weight_decay. As
//                         torch.optim.AdamW on grad * metrics[2], with scalars
//                         lr, 1 - beta1^t, 1 - beta2^t.
//   amax                  x bf16[n] -> amax[1]: the largest magnitude; NaN if
//                         any element is
//   cast_fp8              x bf16[R,C], amax[1] -> scale[1], codes, optionally
//                         codes^T; args R, C, FORMAT, LAYOUT. FORMAT 0 is
//                         f8e4m3, 1 f8e5m2 and the type of the codes. scale is
//                         amax / (largest code), 1 if amax is 0; a code is
//                         x * (1 / scale), rounded once to nearest even,
//                         saturating (kernels/Fp8.h). LAYOUT 1 gives codes
//                         [R',C'], 2 gives only their transpose [C',R'], 3
//                         both in this order; n' is n rounded up to 16, and
//                         what is beyond n is 0.
//   linear_fp8            a[M',K'], sa[1], b[N',K'], sb[1] -> y[M,N];
//                         args M, N, K, ACC. y = sa * sb * sum of a * b, summed
//                         in f32 over the codes' values. a and b are f8e4m3 or
//                         f8e5m2, y is bf16, rounded once (ACC 0), or f32. Both
//                         operands have the summed dimension inside, the one
//                         order that tensor cores take for fp8: a forward is
//                         (x, w), its input gradient (dy, w^T), its weight
//                         gradient (dy^T, x^T).
//   layer_norm            x[T,H], w[H], bias[H] -> y[T,H]; args H; floats eps.
//                         y = (x - mean) / sqrt(variance + eps) * w + bias,
//                         the variance over H (not H - 1)
//   layer_norm_grad_input   dy[T,H], x[T,H], w[H] -> dx[T,H]; args H;
//                         floats eps; in place with dy
//   layer_norm_grad_weight  dy[T,H], x[T,H] -> gw[H], gbias[H]; args H, ACC;
//                         floats eps
//   gelu                  x[T,F] -> y[T,F]; args F; in place. The tanh form:
//                         y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//   gelu_grad             dy[T,F], x[T,F] -> dx[T,F]; args F; in place with
//                         either
//
// Two equal runs with equal thread counts give equal bits. Row kernels and
// attention do so for any thread count; the three linear kernels split by
// oneDNN's choice.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_H
#define RECKON_RUNTIME_DEVICE_KERNELS_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace reckon::device {

/// Element types; the numbers are those of the plan file.
enum class DType : uint8_t {
  F32 = 0,
  BF16,
  F16,
  F64,
  I32,
  I64,
  U8,
  F8E4M3,
  F8E5M2
};

/// Bytes of one element.
int64_t dtypeBytes(DType dtype);
/// The name as in the plan file: "f32".
std::string_view dtypeName(DType dtype);

/// Kernels; the numbers are those of the plan file.
enum class Kernel : uint16_t {
  None = 0,
  FillZero,
  Copy,
  Add,
  Embedding,
  EmbeddingGrad,
  RmsNorm,
  RmsNormGradInput,
  RmsNormGradWeight,
  Linear,
  LinearGradInput,
  LinearGradWeight,
  Rope,
  Attention,
  AttentionGrad,
  Swiglu,
  SwigluGrad,
  CrossEntropyMax,
  CrossEntropySum,
  CrossEntropyLoss,
  CrossEntropyGrad,
  SumSquares,
  ClipFactor,
  Adamw,
  Amax,
  CastFp8,
  LinearFp8,
  LayerNorm,
  LayerNormGradInput,
  LayerNormGradWeight,
  Gelu,
  GeluGrad,
};
inline constexpr int kernelCount = static_cast<int>(Kernel::GeluGrad) + 1;

/// Places in the metrics block that the loss and optimizer kernels use.
enum MetricSlot : int {
  MetricLossSum = 0,
  MetricSquaredNorm = 1,
  MetricClipFactor = 2,
  MetricNorm = 3,
  metricSlots = 4,
};

/// Places in the step's parameter block that adamw reads.
enum ScalarSlot : int {
  ScalarLearningRate = 0,
  ScalarBias1 = 1, // 1 - beta1^t
  ScalarBias2 = 2, // 1 - beta2^t
  scalarSlots = 3,
};

/// How many operands and constants a kernel takes.
struct KernelSignature {
  std::string_view name;
  int inputs = 0;
  int outputs = 0;
  int optionalOutputs = 0;
  int args = 0;
  int floats = 0;
};

/// The signature of a kernel, or null for a number that names none.
const KernelSignature *kernelSignature(Kernel kernel);

/// One operand's type and size. Its address is given to each run.
struct Operand {
  DType dtype = DType::F32;
  int64_t elements = 0;
};

/// Everything about a call that does not change from run to run.
struct KernelCall {
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  std::span<const int64_t> args;
  std::span<const double> floats;
  int stream = 0; // the plan's stream; the CPU device has one order for all
};

/// A kernel bound to sizes and constants, ready to run any number of times.
/// It must not outlive its device.
class PreparedKernel {
public:
  virtual ~PreparedKernel() = default;
  /// Runs on these operands: the inputs' addresses, then the outputs'.
  /// Allocates nothing unless it fails.
  virtual Status run(std::span<void *const> pointers) = 0;
};

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_H
