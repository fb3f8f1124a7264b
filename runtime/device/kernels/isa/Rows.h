//===- Rows.h - the kernels of one instruction set ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Signatures as in RowKernels.h; Table.cpp puts them together. Each file
// instantiates its struct for the two storage types.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_ISA_ROWS_H
#define RECKON_RUNTIME_DEVICE_KERNELS_ISA_ROWS_H

#include "runtime/device/kernels/isa/Vec.h"

namespace reckon::device::RECKON_ISA {

template <typename T> struct Elementwise {
  static void add(const T *a, const T *b, T *c, int64_t n);
  static void accumulate(const T *x, float *sum, int64_t n);
  static void rope(const T *x, const float *table, T *y, int64_t firstRow,
                   int64_t rows, int64_t heads, int64_t d, int64_t s,
                   float sign);
  static void swiglu(const T *gate, const T *up, T *y, int64_t n);
  static void swigluGrad(const T *dy, const T *gate, const T *up, T *dgate,
                         T *dup, int64_t n);
  static void gelu(const T *x, T *y, int64_t n);
  static void geluGrad(const T *dy, const T *x, T *dx, int64_t n);
};

template <typename T> struct Norms {
  static void rmsNorm(const T *x, const T *w, T *y, int64_t rows, int64_t h,
                      float eps);
  static void rmsNormGradInput(const T *dy, const T *x, const T *w, T *dx,
                               int64_t rows, int64_t h, float eps);
  static void rmsInverse(const T *x, float *rstd, int64_t rows, int64_t h,
                         float eps);
  static void rmsNormGradWeight(const T *dy, const T *x, const float *rstd,
                                float *gw, int64_t rows, int64_t h,
                                int64_t begin, int64_t end, bool accumulate);
  static void layerNorm(const T *x, const T *w, const T *b, T *y, int64_t rows,
                        int64_t h, float eps);
  static void layerNormGradInput(const T *dy, const T *x, const T *w, T *dx,
                                 int64_t rows, int64_t h, float eps);
  static void layerNormStats(const T *x, float *means, float *rstds,
                             int64_t rows, int64_t h, float eps);
  static void layerNormGradWeight(const T *dy, const T *x, const float *means,
                                  const float *rstds, float *gw, float *gb,
                                  int64_t rows, int64_t h, int64_t begin,
                                  int64_t end, bool accumulate);
};

template <typename T> struct CrossEntropy {
  static void rowMax(const T *logits, float *max, int64_t rows, int64_t v,
                     int64_t valid);
  static void rowSums(const T *logits, const int32_t *targets, const float *max,
                      float *sums, float *terms, int64_t rows, int64_t v,
                      int64_t valid, int64_t offset);
  static void grad(const T *logits, const int32_t *targets, const float *lse,
                   T *dlogits, int64_t rows, int64_t v, int64_t valid,
                   int64_t offset, float scale);
};

template <typename T> struct Attention {
  static int64_t scratch(const AttentionSizes &sizes, bool backward);
  static void forward(const AttentionForward<T> &call, int64_t sequence,
                      int64_t head, int64_t block, float *scratch);
  static void backward(const AttentionBackward<T> &call, int64_t sequence,
                       int64_t kvHead, float *scratch);
};

void widen(const Bf16 *from, float *to, int64_t n);
void narrow(const float *from, Bf16 *to, int64_t n);
double sumSquares(const float *x, int64_t n);
void adamw(const AdamwStep &step, int64_t begin, int64_t end);

/// The table that RowKernels.h's rowKernels() hands out.
extern const RowKernels table;

} // namespace reckon::device::RECKON_ISA

#endif // RECKON_RUNTIME_DEVICE_KERNELS_ISA_ROWS_H
