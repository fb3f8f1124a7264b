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
// T is how activations and parameters lie in memory: float or Bf16. Arithmetic
// is f32 whatever T is; a Bf16 result is rounded once, to nearest even, when it
// is stored. Sums, statistics and weight gradients are f32 or f64 throughout.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_ROWKERNELS_H
#define RECKON_RUNTIME_DEVICE_KERNELS_ROWKERNELS_H

#include <cstdint>

namespace reckon::device {

/// A bf16 in memory: the upper half of an f32.
struct Bf16 {
  uint16_t bits;
};

/// Sizes of an attention call: heads of queries and keys, head dimension,
/// tokens of a sequence.
struct AttentionSizes {
  int64_t hq, hkv, d, s;
};

template <typename T> struct AttentionForward {
  AttentionSizes sizes;
  const T *q, *k, *v;
  T *o;
  float *lse;
};

template <typename T> struct AttentionBackward {
  AttentionSizes sizes;
  const T *dO, *q, *k, *v, *o;
  const float *lse;
  T *dq, *dk, *dv;
  float *delta;
};

/// One AdamW update. The scalars are already combined: stepSize is
/// lr / (1 - beta1^t), inverseRoot is 1 / sqrt(1 - beta2^t), keep is
/// 1 - lr * weight_decay, factor the clip factor. 1 - beta is taken in f64:
/// in f32 it would be off by 5e-5 at beta2 = 0.999.
struct AdamwStep {
  const float *grad;
  float *main, *m, *v;
  Bf16 *param; // rounded copy of main, or null
  float factor, beta1, oneMinusBeta1, beta2, oneMinusBeta2;
  float eps, keep, stepSize, inverseRoot;
};

/// Query rows of one attention task.
inline constexpr int64_t attentionBlock = 64;

/// The kernels whose operands are stored as T.
template <typename T> struct StorageKernels {
  void (*add)(const T *a, const T *b, T *c, int64_t n);
  /// sum[i] += x[i]
  void (*accumulate)(const T *x, float *sum, int64_t n);

  void (*rmsNorm)(const T *x, const T *w, T *y, int64_t rows, int64_t h,
                  float eps);
  void (*rmsNormGradInput)(const T *dy, const T *x, const T *w, T *dx,
                           int64_t rows, int64_t h, float eps);
  /// rstd[r] = 1 / sqrt(mean(x[r]^2) + eps)
  void (*rmsInverse)(const T *x, float *rstd, int64_t rows, int64_t h,
                     float eps);
  /// Columns [begin, end) of gw, over all rows in order.
  void (*rmsNormGradWeight)(const T *dy, const T *x, const float *rstd,
                            float *gw, int64_t rows, int64_t h, int64_t begin,
                            int64_t end, bool accumulate);

  void (*layerNorm)(const T *x, const T *w, const T *b, T *y, int64_t rows,
                    int64_t h, float eps);
  void (*layerNormGradInput)(const T *dy, const T *x, const T *w, T *dx,
                             int64_t rows, int64_t h, float eps);
  /// Of each row: the mean and 1 / sqrt(variance + eps).
  void (*layerNormStats)(const T *x, float *means, float *rstds, int64_t rows,
                         int64_t h, float eps);
  /// Columns [begin, end) of gw and gb, over all rows in order.
  void (*layerNormGradWeight)(const T *dy, const T *x, const float *means,
                              const float *rstds, float *gw, float *gb,
                              int64_t rows, int64_t h, int64_t begin,
                              int64_t end, bool accumulate);

  /// sign is 1 or -1 (inverse); firstRow gives the positions.
  void (*rope)(const T *x, const float *table, T *y, int64_t firstRow,
               int64_t rows, int64_t heads, int64_t d, int64_t s, float sign);

  void (*swiglu)(const T *gate, const T *up, T *y, int64_t n);
  void (*swigluGrad)(const T *dy, const T *gate, const T *up, T *dgate, T *dup,
                     int64_t n);
  void (*gelu)(const T *x, T *y, int64_t n);
  void (*geluGrad)(const T *dy, const T *x, T *dx, int64_t n);

  void (*rowMax)(const T *logits, float *max, int64_t rows, int64_t v,
                 int64_t valid);
  void (*rowSums)(const T *logits, const int32_t *targets, const float *max,
                  float *sums, float *terms, int64_t rows, int64_t v,
                  int64_t valid, int64_t offset);
  void (*crossEntropyGrad)(const T *logits, const int32_t *targets,
                           const float *lse, T *dlogits, int64_t rows,
                           int64_t v, int64_t valid, int64_t offset,
                           float scale);

  /// Floats of scratch that one thread needs.
  int64_t (*attentionScratch)(const AttentionSizes &sizes, bool backward);
  /// Query rows [block * attentionBlock, ...) of query head `head` of
  /// sequence `sequence`.
  void (*attentionForward)(const AttentionForward<T> &call, int64_t sequence,
                           int64_t head, int64_t block, float *scratch);
  /// Everything that belongs to key head `kvHead` of sequence `sequence`.
  void (*attentionBackward)(const AttentionBackward<T> &call, int64_t sequence,
                            int64_t kvHead, float *scratch);
};

struct RowKernels {
  const char *name;
  int lanes; // floats in a vector

  StorageKernels<float> f32;
  StorageKernels<Bf16> bf16;

  void (*widen)(const Bf16 *from, float *to, int64_t n);
  void (*narrow)(const float *from, Bf16 *to, int64_t n);

  /// Sum of squares in f64; the order is the same in every variant.
  double (*sumSquares)(const float *x, int64_t n);
  void (*adamw)(const AdamwStep &step, int64_t begin, int64_t end);
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
