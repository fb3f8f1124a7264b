//===- Embedding.cu - looking words up ------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Lanes.cuh"

namespace reckon::cuda {

namespace {

constexpr unsigned blockWarps = 4;

/// A warp a token: copies its row of the table, or writes zeros.
template <typename T, int N>
__global__ void __launch_bounds__(blockWarps * 32)
    embeddingKernel(const int32_t *tokens, const T *weight, T *y,
                    EmbeddingSizes sizes) {
  int64_t row = int64_t{blockIdx.x} * blockWarps + threadIdx.x / 32;
  if (row >= sizes.rows)
    return;
  int64_t word = tokens[row] - sizes.offset;
  bool here = word >= 0 && word < sizes.v;
  const T *from = weight + (here ? word : 0) * sizes.h;
  T *to = y + row * sizes.h;
#pragma unroll 4
  for (int64_t i = threadIdx.x % 32 * N; i < sizes.h; i += 32 * N) {
    Lanes<T, N> lanes;
    if (here)
      lanes = loadLanes<N>(from + i);
    else
#pragma unroll
      for (int k = 0; k < N; ++k)
        lanes.at[k] = fromFloat<T>(0.0f);
    storeLanes(to + i, lanes);
  }
}

} // namespace

cudaError_t embedding(Storage storage, const EmbeddingSizes &sizes,
                      const int32_t *tokens, const void *weight, void *y,
                      cudaStream_t stream) {
  if (sizes.rows == 0)
    return cudaSuccess;
  auto blocks =
      static_cast<unsigned>((sizes.rows + blockWarps - 1) / blockWarps);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    auto *from = static_cast<const T *>(weight);
    auto *to = static_cast<T *>(y);
    LaunchShape shape{blocks, blockWarps * 32, 0, stream};
    if (wideRows(sizes.h, from, to))
      return launch(shape, embeddingKernel<T, lanesOf<T>>, tokens, from, to,
                    sizes);
    return launch(shape, embeddingKernel<T, 1>, tokens, from, to, sizes);
  });
}

} // namespace reckon::cuda
