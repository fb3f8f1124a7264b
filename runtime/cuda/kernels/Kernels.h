//===- Kernels.h - launchers of the CUDA kernels --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One function for each kernel of runtime/device/Kernels.h, whose conventions
// hold here too. Addresses are the device's; everything is only enqueued. The
// result tells whether the launch was accepted. Sizes were checked by
// runtime/device/kernels/Calls.h; where one is 0 nothing is launched. Operands
// need the alignment of their elements only, but 16 bytes make them fast.
//
// Results do not depend on the order in which threads or blocks run.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_KERNELS_H
#define RECKON_RUNTIME_CUDA_KERNELS_KERNELS_H

#include "runtime/cuda/Cuda.h"
#include "runtime/device/kernels/CounterRng.h"

namespace reckon::cuda {

/// How activations and parameters lie in memory.
enum class Storage : uint8_t { F32, Bf16 };

/// Blocks that a grid may have in x.
inline constexpr int64_t maxGrid = 0x7fffffff;

// --- Elementwise.cu ---------------------------------------------------------

cudaError_t fillZero(void *x, int64_t bytes, cudaStream_t stream);
cudaError_t copy(const void *x, void *y, int64_t bytes, cudaStream_t stream);
/// c[n] = a[n] + b[n]; c may be a or b.
cudaError_t add(Storage storage, const void *a, const void *b, void *c,
                int64_t n, cudaStream_t stream);
/// y[n] = x[n], from bf16 to f32.
cudaError_t widen(const void *x, float *y, int64_t n, cudaStream_t stream);
/// y[n] = x[n], from f32 to bf16, rounded to nearest even.
cudaError_t narrow(const float *x, void *y, int64_t n, cudaStream_t stream);
/// x[i] = the stream's element first + i, for i < n: the bits of
/// device::fillNormal, rounded to nearest even for bf16.
cudaError_t fillNormal(Storage storage, void *x,
                       const device::NormalStream &normal, int64_t first,
                       int64_t n, cudaStream_t stream);

// --- Activations.cu: n elements of every operand ----------------------------

cudaError_t swiglu(Storage storage, const void *gate, const void *up, void *y,
                   int64_t n, cudaStream_t stream);
/// Each output may be any of the inputs.
cudaError_t swigluGrad(Storage storage, const void *dy, const void *gate,
                       const void *up, void *dgate, void *dup, int64_t n,
                       cudaStream_t stream);
/// y may be x.
cudaError_t gelu(Storage storage, const void *x, void *y, int64_t n,
                 cudaStream_t stream);
/// dx may be dy or x.
cudaError_t geluGrad(Storage storage, const void *dy, const void *x, void *dx,
                     int64_t n, cudaStream_t stream);

// --- Rope.cu ----------------------------------------------------------------

/// Tokens, heads, size of a head (even), positions of the table (which divide
/// the tokens).
struct RopeSizes {
  int64_t rows = 0, heads = 0, d = 0, s = 0;
  bool inverse = false;
};
/// y may be x.
cudaError_t rope(Storage storage, const RopeSizes &sizes, const void *x,
                 const float *table, void *y, cudaStream_t stream);

// --- Embedding.cu -----------------------------------------------------------

/// A table [v, h] whose first row is word `offset`, and `rows` tokens.
struct EmbeddingSizes {
  int64_t rows = 0, v = 0, h = 0, offset = 0;
};
cudaError_t embedding(Storage storage, const EmbeddingSizes &sizes,
                      const int32_t *tokens, const void *weight, void *y,
                      cudaStream_t stream);
/// Bytes of scratch that embeddingGrad needs, 256-byte aligned: about
/// 8 (v + rows) and h f32 for every 32 rows.
int64_t embeddingGradScratch(const EmbeddingSizes &sizes);
cudaError_t embeddingGrad(Storage storage, const EmbeddingSizes &sizes,
                          bool accumulate, const void *dy,
                          const int32_t *tokens, float *gw, void *scratch,
                          cudaStream_t stream);

// --- Norms.cu ---------------------------------------------------------------

struct NormSizes {
  int64_t rows = 0, h = 0;
  float eps = 0.0f;
};
cudaError_t rmsNorm(Storage storage, const NormSizes &sizes, const void *x,
                    const void *w, void *y, cudaStream_t stream);
/// dx may be dy.
cudaError_t rmsNormGradInput(Storage storage, const NormSizes &sizes,
                             const void *dy, const void *x, const void *w,
                             void *dx, cudaStream_t stream);
/// Bytes of scratch, 16-byte aligned: one sum of h f32 for every 4 rows, at
/// most 512 (2048 where h is at most 1024).
int64_t rmsNormGradWeightScratch(const NormSizes &sizes);
cudaError_t rmsNormGradWeight(Storage storage, const NormSizes &sizes,
                              bool accumulate, const void *dy, const void *x,
                              float *gw, void *scratch, cudaStream_t stream);

cudaError_t layerNorm(Storage storage, const NormSizes &sizes, const void *x,
                      const void *w, const void *b, void *y,
                      cudaStream_t stream);
/// dx may be dy.
cudaError_t layerNormGradInput(Storage storage, const NormSizes &sizes,
                               const void *dy, const void *x, const void *w,
                               void *dx, cudaStream_t stream);
/// Twice as much: for gw and gb.
int64_t layerNormGradWeightScratch(const NormSizes &sizes);
cudaError_t layerNormGradWeight(Storage storage, const NormSizes &sizes,
                                bool accumulate, const void *dy, const void *x,
                                float *gw, float *gb, void *scratch,
                                cudaStream_t stream);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_KERNELS_H
