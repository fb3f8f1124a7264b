//===- ColumnSums.cu - the end of a sum over rows -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/ColumnSums.h"
#include "runtime/cuda/kernels/Types.cuh"

namespace reckon::cuda {

namespace {

constexpr unsigned columns = 32, groups = 8;

/// Group g of a block sums rows g, g + 8, ... of the block's columns, so that
/// eight times as many loads are under way; the groups' sums are then added in
/// their order. What is read was just written and lies in the L2 cache.
__global__ void __launch_bounds__(columns *groups)
    columnSumsKernel(const float *partial, int64_t parts, int64_t h, float *out,
                     bool accumulate) {
  RECKON_SHARED(float, sums);
  int64_t column = int64_t{blockIdx.x} * columns + threadIdx.x;
  float sum = 0.0f;
  if (column < h) {
#pragma unroll 8
    for (int64_t part = threadIdx.y; part < parts; part += groups)
      sum += partial[part * h + column];
  }
  sums[threadIdx.y * columns + threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= h)
    return;
  for (unsigned group = 1; group < groups; ++group)
    sum += sums[group * columns + threadIdx.x];
  out[column] = accumulate ? out[column] + sum : sum;
}

} // namespace

cudaError_t columnSums(const float *partial, int64_t parts, int64_t h,
                       float *out, bool accumulate, cudaStream_t stream) {
  auto blocks = static_cast<unsigned>((h + columns - 1) / columns);
  return launch(
      {blocks, dim3(columns, groups), columns * groups * sizeof(float), stream},
      columnSumsKernel, partial, parts, h, out, accumulate);
}

} // namespace reckon::cuda
