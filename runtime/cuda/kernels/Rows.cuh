//===- Rows.cuh - sums and maxima over the threads of a row ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A row belongs to a warp if it is short, else to a block. A lane sums what it
// owns in f32; lanes are then added as a tree, so that errors grow with the
// logarithm of the row's length, and in an order that does not depend on which
// thread is first.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_ROWS_CUH
#define RECKON_RUNTIME_CUDA_KERNELS_ROWS_CUH

#include "runtime/cuda/kernels/Lanes.cuh"

namespace reckon::cuda {

/// The sum over all lanes of the warp, in every lane. Both partners of a step
/// add the same two numbers, so all lanes have the same bits.
__device__ __forceinline__ float warpSum(float value) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, lanes);
  return value;
}

/// Floats of scratch that a block of a wide row needs.
inline constexpr int rowScratch = 64;

/// Who a thread is within its row. Wide: a block a row; else a warp a row.
template <bool Wide> struct RowTeam {
  unsigned self;     ///< of the threads of this row
  unsigned size;     ///< their number
  unsigned inBlock;  ///< this row among those of the block
  float *scratch;    ///< of a wide row: rowScratch floats of shared memory
  unsigned turn = 0; ///< sums so far; neighbours use different halves

  __device__ explicit RowTeam(float *scratch) : scratch(scratch) {
    if constexpr (Wide) {
      self = threadIdx.x;
      size = blockDim.x;
      inBlock = 0;
    } else {
      self = threadIdx.x % 32;
      size = 32;
      inBlock = threadIdx.x / 32;
    }
  }
  /// The row, or part, that this thread works on.
  __device__ int64_t index() const {
    if constexpr (Wide)
      return blockIdx.x;
    else
      return int64_t{blockIdx.x} * (blockDim.x / 32) + inBlock;
  }

  /// The sum over the row's threads, in each of them. All of them must call.
  __device__ float sum(float value) {
    value = warpSum(value);
    if constexpr (Wide) {
      // Two halves: whoever is quick to the next sum must not overwrite what a
      // slow thread has yet to read. The barrier of that sum keeps the one
      // after it apart.
      float *parts = scratch + (turn++ % 2) * 32;
      if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
      __syncthreads();
      unsigned lane = threadIdx.x % 32;
      value = warpSum(lane < blockDim.x / 32 ? parts[lane] : 0.0f);
    }
    return value;
  }
};

/// A row in global memory with room for a copy in shared memory. A thread only
/// ever looks at lanes that it filled itself.
template <typename T> struct CachedRow {
  const T *row;
  T *cache; ///< null: rows are too long to be kept, and read again

  template <int N> __device__ Lanes<T, N> fill(unsigned i) const {
    Lanes<T, N> lanes = loadLanes<N>(row + i);
    if (cache)
      storeLanes(cache + i, lanes);
    return lanes;
  }
  template <int N> __device__ Lanes<T, N> get(unsigned i) const {
    return loadLanes<N>(cache ? cache + i : row + i);
  }
};

/// Threads of the largest block.
inline constexpr unsigned maxRowThreads = 512;
/// Most shared memory of a block: two blocks a multiprocessor at least.
inline constexpr int64_t maxRowShared = 96 << 10;

/// How rows are dealt out.
struct RowShape {
  bool wide = false;    ///< a block a row
  unsigned threads = 0; ///< of a block
  unsigned rowsInBlock = 1;
  unsigned rowBytes = 0; ///< of shared memory for one row; 0: not kept

  unsigned blocks(int64_t rows) const {
    return static_cast<unsigned>((rows + rowsInBlock - 1) / rowsInBlock);
  }
  /// Bytes of shared memory, with `extra` a row.
  size_t shared(unsigned extra = 0) const {
    return (wide ? rowScratch * sizeof(float) : 0) +
           size_t{rowsInBlock} * (rowBytes + extra);
  }
};

/// The shape for rows of h elements of T, n at a time, of which `copies` are to
/// be kept. A block is larger for longer rows, so that what a thread sums stays
/// short.
template <typename T> RowShape rowShape(int64_t h, int n, int copies) {
  int64_t items = (h + n - 1) / n;
  RowShape shape;
  shape.wide = items > 128;
  shape.threads = items <= 1024 ? 128 : items <= 4096 ? 256 : maxRowThreads;
  if (!shape.wide)
    shape.rowsInBlock = shape.threads / 32;
  // Each copy starts at 16 bytes.
  int64_t bytes = (h * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16 * copies;
  if (bytes * shape.rowsInBlock <= maxRowShared)
    shape.rowBytes = static_cast<unsigned>(bytes);
  return shape;
}

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_KERNELS_ROWS_CUH
