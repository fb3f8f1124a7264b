//===- Rows.h - the kernels of one instruction set ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Signatures as in RowKernels.h; Table.cpp puts them together.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_ISA_ROWS_H
#define RECKON_RUNTIME_DEVICE_KERNELS_ISA_ROWS_H

#include "runtime/device/kernels/isa/Vec.h"

namespace reckon::device::RECKON_ISA {

void add(const float *a, const float *b, float *c, int64_t n);
void rmsNorm(const float *x, const float *w, float *y, int64_t rows, int64_t h,
             float eps);
void rmsNormGradInput(const float *dy, const float *x, const float *w,
                      float *dx, int64_t rows, int64_t h, float eps);
void rmsInverse(const float *x, float *rstd, int64_t rows, int64_t h,
                float eps);
void rmsNormGradWeight(const float *dy, const float *x, const float *rstd,
                       float *gw, int64_t rows, int64_t h, int64_t begin,
                       int64_t end, bool accumulate);
void rope(const float *x, const float *table, float *y, int64_t firstRow,
          int64_t rows, int64_t heads, int64_t d, int64_t s, float sign);
void swiglu(const float *gate, const float *up, float *y, int64_t n);
void swigluGrad(const float *dy, const float *gate, const float *up,
                float *dgate, float *dup, int64_t n);
void rowMax(const float *logits, float *max, int64_t rows, int64_t v,
            int64_t valid);
void rowSums(const float *logits, const int32_t *targets, const float *max,
             float *sums, float *terms, int64_t rows, int64_t v, int64_t valid,
             int64_t offset);
void crossEntropyGrad(const float *logits, const int32_t *targets,
                      const float *lse, float *dlogits, int64_t rows, int64_t v,
                      int64_t valid, int64_t offset, float scale);
double sumSquares(const float *x, int64_t n);
void adamw(const AdamwStep &step, int64_t begin, int64_t end);
int64_t attentionScratch(const AttentionSizes &sizes, bool backward);
void attentionForward(const AttentionForward &call, int64_t sequence,
                      int64_t head, int64_t block, float *scratch);
void attentionBackward(const AttentionBackward &call, int64_t sequence,
                       int64_t kvHead, float *scratch);

/// The table that RowKernels.h's rowKernels() hands out.
extern const RowKernels table;

} // namespace reckon::device::RECKON_ISA

#endif // RECKON_RUNTIME_DEVICE_KERNELS_ISA_ROWS_H
