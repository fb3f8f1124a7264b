//===- ColumnSums.h - the end of a sum over rows --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_COLUMNSUMS_H
#define RECKON_RUNTIME_CUDA_KERNELS_COLUMNSUMS_H

#include "runtime/cuda/Cuda.h"

namespace reckon::cuda {

/// out[h] = (or +=) the sum over the rows of partial[parts, h], in an order
/// that depends on `parts` alone. parts and h are at least 1.
cudaError_t columnSums(const float *partial, int64_t parts, int64_t h,
                       float *out, bool accumulate, cudaStream_t stream);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_COLUMNSUMS_H
