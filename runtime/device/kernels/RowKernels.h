//===- RowKernels.h - the table of hand-written CPU kernels ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The files in kernels/isa are compiled once for each instruction set, each
// time in another namespace, and export one such table. They run one thread's
// share and know nothing of threads. Only plain structs cross this header: an
// inline function that both sides used could be emitted with AVX-512 and then
// be picked by the linker for every machine.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_ROWKERNELS_H
#define RECKON_RUNTIME_DEVICE_KERNELS_ROWKERNELS_H

#include <cstdint>

namespace reckon::device {

/// Sizes of an attention call: heads of queries and keys, head dimension,
/// tokens of a sequence.
struct AttentionSizes {
  int64_t hq, hkv, d, s;
};

struct AttentionForward {
  AttentionSizes sizes;
  const float *q, *k, *v;
  float *o, *lse;
};

struct AttentionBackward {
  AttentionSizes sizes;
  const float *dO, *q, *k, *v, *o, *lse;
  float *dq, *dk, *dv, *delta;
};

/// One AdamW update. The scalars are already combined: stepSize is
/// lr / (1 - beta1^t), inverseRoot is 1 / sqrt(1 - beta2^t), keep is
/// 1 - lr * weight_decay, factor the clip factor. 1 - beta is taken in f64:
/// in f32 it would be off by 5e-5 at beta2 = 0.999.
struct AdamwStep {
  const float *grad;
  float *main, *m, *v;
  uint16_t *param; // bf16 copy of main, or null
  float factor, beta1, oneMinusBeta1, beta2, oneMinusBeta2;
  float eps, keep, stepSize, inverseRoot;
};

/// Query rows of one attention task.
inline constexpr int64_t attentionBlock = 64;

struct RowKernels {
  const char *name;
  int lanes; // floats in a vector

  void (*add)(const float *a, const float *b, float *c, int64_t n);

  void (*rmsNorm)(const float *x, const float *w, float *y, int64_t rows,
                  int64_t h, float eps);
  void (*rmsNormGradInput)(const float *dy, const float *x, const float *w,
                           float *dx, int64_t rows, int64_t h, float eps);
  /// rstd[r] = 1 / sqrt(mean(x[r]^2) + eps)
  void (*rmsInverse)(const float *x, float *rstd, int64_t rows, int64_t h,
                     float eps);
  /// Columns [begin, end) of gw, over all rows in order.
  void (*rmsNormGradWeight)(const float *dy, const float *x, const float *rstd,
                            float *gw, int64_t rows, int64_t h, int64_t begin,
                            int64_t end, bool accumulate);

  /// sign is 1 or -1 (inverse); firstRow gives the positions.
  void (*rope)(const float *x, const float *table, float *y, int64_t firstRow,
               int64_t rows, int64_t heads, int64_t d, int64_t s, float sign);

  void (*swiglu)(const float *gate, const float *up, float *y, int64_t n);
  void (*swigluGrad)(const float *dy, const float *gate, const float *up,
                     float *dgate, float *dup, int64_t n);

  void (*rowMax)(const float *logits, float *max, int64_t rows, int64_t v,
                 int64_t valid);
  void (*rowSums)(const float *logits, const int32_t *targets, const float *max,
                  float *sums, float *terms, int64_t rows, int64_t v,
                  int64_t valid, int64_t offset);
  void (*crossEntropyGrad)(const float *logits, const int32_t *targets,
                           const float *lse, float *dlogits, int64_t rows,
                           int64_t v, int64_t valid, int64_t offset,
                           float scale);

  /// Sum of squares in f64; the order is the same in every variant.
  double (*sumSquares)(const float *x, int64_t n);
  void (*adamw)(const AdamwStep &step, int64_t begin, int64_t end);

  /// Floats of scratch that one thread needs.
  int64_t (*attentionScratch)(const AttentionSizes &sizes, bool backward);
  /// Query rows [block * attentionBlock, ...) of query head `head` of
  /// sequence `sequence`.
  void (*attentionForward)(const AttentionForward &call, int64_t sequence,
                           int64_t head, int64_t block, float *scratch);
  /// Everything that belongs to key head `kvHead` of sequence `sequence`.
  void (*attentionBackward)(const AttentionBackward &call, int64_t sequence,
                            int64_t kvHead, float *scratch);
};

/// Instruction sets that the kernels are compiled for.
enum class Isa : uint8_t { Baseline = 0, Avx2, Avx512 };
inline constexpr int isaCount = 3;

/// The kernels compiled for an instruction set, or null if they are not part
/// of this build.
const RowKernels *rowKernels(Isa isa);
/// Whether this machine can execute it.
bool isaSupported(Isa isa);

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_ROWKERNELS_H
