//===- AttentionTiles.cuh - tiles of heads in shared memory ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A block of 256 threads owns 64 rows of a head (queries, or keys) and meets
// the rows of the other side in rounds of L. Tiles lie in shared memory as f32
// whatever the storage; thread (y, x) of 16 x 16 holds the scores of the own
// rows 4 y + i with the met rows x + 16 j, and of a result those own rows' the
// columns 4 x + 64 c + 0..3, c < C. So all that is known of an own row is in
// the 16 lanes of half a warp: its maxima and sums are shuffles, and a tile of
// weights is written and read by the same warp.
//
// The stride of a tile's row is an odd number of 16-byte units: eight lanes
// that read 16 bytes of neighbouring rows meet all 32 banks.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_KERNELS_ATTENTIONTILES_CUH
#define RECKON_RUNTIME_CUDA_KERNELS_ATTENTIONTILES_CUH

#include "runtime/cuda/kernels/AttentionKernels.h"
#include "runtime/cuda/kernels/Lanes.cuh"

#include <type_traits>

namespace reckon::cuda::attention {

inline constexpr int ownRows = attentionOwnRows;
inline constexpr int threads = 256;
inline constexpr unsigned allLanes = 0xffffffffu;
inline constexpr float log2e = 1.44269504088896340736f;

/// Rows met in one round: as many as let two blocks of heads of 128 share a
/// multiprocessor.
template <int C> inline constexpr int metRows = C == 1 ? 64 : 32;
/// Blocks that registers must leave room for on a multiprocessor.
template <int C> inline constexpr int residentBlocks = C <= 2 ? 2 : 1;
/// Stride of a row of the tile of weights [ownRows][L].
template <int L> inline constexpr int weightStride = L + 4;

/// Sizes that all kernels share. Operands are [batch, s, heads, d].
struct Sizes {
  int batch, hq, hkv, group;      ///< group = hq / hkv
  int s;                          ///< tokens of a sequence
  int64_t queryStride, keyStride; ///< elements from token to token
  int d;                          ///< of a head
  int width;                      ///< d rounded up to 4; the rest is zero
  int stride;                     ///< of a tile's row
  bool packed;                    ///< rows allow 16-byte accesses
  float scale;                    ///< of the scores, 1 / sqrt(d)

  /// Where the sequence and head start, for either side.
  __device__ int64_t queries(int sequence, int head) const {
    return int64_t(sequence) * s * queryStride + int64_t(head) * d;
  }
  __device__ int64_t keys(int sequence, int head) const {
    return int64_t(sequence) * s * keyStride + int64_t(head) * d;
  }
};

__device__ inline int laneX() { return static_cast<int>(threadIdx.x) % 16; }
__device__ inline int laneY() { return static_cast<int>(threadIdx.x) / 16; }

/// Over the 16 lanes of an own row, in a fixed order; all get the result.
__device__ inline float sumOfRow(float x) {
#pragma unroll
  for (int lanes = 8; lanes > 0; lanes /= 2)
    x += __shfl_xor_sync(allLanes, x, lanes);
  return x;
}
__device__ inline float maxOfRow(float x) {
#pragma unroll
  for (int lanes = 8; lanes > 0; lanes /= 2)
    x = fmaxf(x, __shfl_xor_sync(allLanes, x, lanes));
  return x;
}

/// Copies rows [first, first + ROWS) of a head to a tile, widened; rows from s
/// on are zero. Sixteen neighbouring lanes share a row.
template <int ROWS, typename T>
__device__ void loadTile(float *tile, const T *head, int first,
                         int64_t rowStride, const Sizes &z) {
  constexpr int lanes = lanesOf<T>;
  if (z.packed) {
    for (int column = laneX() * lanes; column < z.d; column += 16 * lanes) {
      // Several rows are on their way before the first is needed.
#pragma unroll 4
      for (int row = laneY(); row < ROWS; row += 16) {
        Pack<T> pack = {};
        if (first + row < z.s)
          pack = loadPack(head + (first + row) * rowStride + column);
#pragma unroll
        for (int part = 0; part < lanes; part += 4) {
          Pack<float> wide;
#pragma unroll
          for (int x = 0; x < 4; ++x)
            wide.at[x] = toFloat(pack.at[part + x]);
          storePack(tile + row * z.stride + column + part, wide);
        }
      }
    }
    return;
  }
  for (int column = laneX(); column < z.width; column += 16)
    for (int row = laneY(); row < ROWS; row += 16) {
      bool there = first + row < z.s && column < z.d;
      tile[row * z.stride + column] =
          there ? toFloat(head[(first + row) * rowStride + column]) : 0.0f;
    }
}

/// sum[i][j] += own row 4 y + i times met row x + 16 j.
template <int N>
__device__ void addScores(float (&sum)[4][N], const float *own,
                          const float *met, const Sizes &z) {
  own += laneY() * 4 * z.stride;
  met += laneX() * z.stride;
#pragma unroll 1
  for (int column = 0; column < z.width; column += 4) {
    Pack<float> a[4], b[N];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      a[i] = loadPack(own + i * z.stride + column);
#pragma unroll
    for (int j = 0; j < N; ++j)
      b[j] = loadPack(met + 16 * j * z.stride + column);
#pragma unroll
    for (int x = 0; x < 4; ++x)
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < N; ++j)
          sum[i][j] += a[i].at[x] * b[j].at[x];
  }
}

/// A thread's part of a result: 4 rows, C times 4 columns.
template <int C> struct Result4 {
  float at[4][C][4] = {};
};

/// result += weights times the first `count` met rows. Met rows beyond `count`
/// are read up to a multiple of 4: they and their weights must be numbers.
template <int C>
__device__ void addWeighted(Result4<C> &result, const float *weights,
                            const float *met, int count, const Sizes &z) {
  constexpr int L = metRows<C>;
  weights += laneY() * 4 * weightStride<L>;
  met += laneX() * 4;
  for (int row = 0; row < count; row += 4) {
    Pack<float> w[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      w[i] = loadPack(weights + i * weightStride<L> + row);
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int c = 0; c < C; ++c) {
        if (laneX() * 4 + 64 * c >= z.width)
          continue;
        Pack<float> x = loadPack(met + (row + j) * z.stride + 64 * c);
#pragma unroll
        for (int i = 0; i < 4; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            result.at[i][c][e] += w[i].at[j] * x.at[e];
      }
  }
}

/// Writes the tile of weights; this warp's rows only.
template <int C>
__device__ void putWeights(float *weights,
                           const float (&values)[4][metRows<C> / 16]) {
  constexpr int L = metRows<C>;
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < L / 16; ++j)
      weights[(laneY() * 4 + i) * weightStride<L> + laneX() + 16 * j] =
          values[i][j];
}

/// Rounds row i of a result, times a factor, to its place in a head.
template <int C, typename T>
__device__ void storeRow(T *row, const float (&values)[C][4], float factor,
                         const Sizes &z) {
#pragma unroll
  for (int c = 0; c < C; ++c) {
    int column = laneX() * 4 + 64 * c;
    Lanes<T, 4> x;
#pragma unroll
    for (int e = 0; e < 4; ++e)
      x.at[e] = fromFloat<T>(values[c][e] * factor);
    if (z.packed) {
      if (column < z.d)
        storeLanes<4>(row + column, x);
      continue;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e)
      if (column + e < z.d)
        row[column + e] = x.at[e];
  }
}

/// Columns of a tile: d rounded up to 4.
inline int tileWidth(int d) { return (d + 3) / 4 * 4; }
/// The stride of its rows, an odd number of 16-byte units.
inline int tileStride(int d) { return (tileWidth(d) / 4 | 1) * 4; }

/// Bytes of shared memory for heads of C chunks: own tiles, met tiles and one
/// tile of weights.
template <int C> size_t sharedBytes(int d, int own, int met) {
  constexpr int L = metRows<C>;
  size_t rows = size_t(own) * ownRows + size_t(met) * L;
  return sizeof(float) *
         (rows * tileStride(d) + size_t(ownRows) * weightStride<L>);
}

/// Sizes of a call whose storage is T; `aligned`: all heads start at 16 bytes.
template <typename T>
Sizes makeSizes(const AttentionShape &shape, bool aligned) {
  Sizes z;
  z.batch = static_cast<int>(shape.batch);
  z.hq = static_cast<int>(shape.hq);
  z.hkv = static_cast<int>(shape.hkv);
  z.group = z.hq / z.hkv;
  z.s = static_cast<int>(shape.s);
  z.queryStride = shape.hq * shape.d;
  z.keyStride = shape.hkv * shape.d;
  z.d = static_cast<int>(shape.d);
  z.width = tileWidth(z.d);
  z.stride = tileStride(z.d);
  z.packed = aligned && z.d % lanesOf<T> == 0;
  z.scale = static_cast<float>(1.0 / sqrt(static_cast<double>(shape.d)));
  return z;
}

/// body(integral_constant of the 64-column chunks) for heads of 1 to
/// attentionMaxHead elements.
template <typename Body> auto withChunks(int d, Body body) {
  switch ((d - 1) / 64) {
  case 0:
    return body(std::integral_constant<int, 1>());
  case 1:
    return body(std::integral_constant<int, 2>());
  case 2:
    return body(std::integral_constant<int, 3>());
  default:
    return body(std::integral_constant<int, 4>());
  }
}

} // namespace reckon::cuda::attention

#endif // RECKON_RUNTIME_CUDA_KERNELS_ATTENTIONTILES_CUH
