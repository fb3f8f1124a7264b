//===- Norms.cu - RMSNorm and LayerNorm, forward and backward -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A row is read once into shared memory, in its storage type, and its
// statistics come from there. With n = (x - mean) * rstd (mean 0 for RMSNorm)
// and g = dy * w:
//
//   y  = n * w + b            dx = rstd * (g - mean(g) - n * mean(g * n))
//   gw = sum over rows of dy * n         gb = sum over rows of dy
//
// where mean(g) and b are LayerNorm's only.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/ColumnSums.h"
#include "runtime/cuda/kernels/Kernels.h"
#include "runtime/cuda/kernels/Rows.cuh"

namespace reckon::cuda {

namespace {

struct RowStats {
  float mean, rstd;
};

/// Reads a row into its cache and gives its statistics to all of its threads.
/// The variance is that of differences to the mean: E(x^2) - E(x)^2 would lose
/// what a large mean leaves of it. `also` are rows to be read meanwhile, so
/// that the sum is waited for once.
template <bool Centred, int N, bool Wide, typename T, typename... Rows>
__device__ __forceinline__ RowStats rowStats(RowTeam<Wide> &team, unsigned h,
                                             float eps, const CachedRow<T> &x,
                                             const Rows &...also) {
  float total = 0.0f, squares = 0.0f;
  unsigned step = team.size * N;
#pragma unroll 2
  for (unsigned i = team.self * N; i < h; i += step) {
    Lanes<T, N> lanes = x.template fill<N>(i);
    (also.template fill<N>(i), ...);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float v = toFloat(lanes.at[k]);
      total += v;
      squares += v * v;
    }
  }
  auto count = static_cast<float>(h);
  float mean = 0.0f;
  if constexpr (Centred) {
    mean = team.sum(total) / count;
    squares = 0.0f;
    for (unsigned i = team.self * N; i < h; i += step) {
      Lanes<T, N> lanes = x.template get<N>(i);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        float v = toFloat(lanes.at[k]) - mean;
        squares += v * v;
      }
    }
  }
  return {mean, 1.0f / sqrtf(team.sum(squares) / count + eps)};
}

/// This row's part of the shared memory, behind the scratch of its block.
template <bool Wide>
__device__ __forceinline__ unsigned char *room(float *shared, unsigned inBlock,
                                               unsigned each) {
  return reinterpret_cast<unsigned char *>(shared + (Wide ? rowScratch : 0)) +
         size_t{inBlock} * each;
}

template <typename T>
__device__ __forceinline__ CachedRow<T>
rowAt(const T *x, int64_t row, unsigned h, unsigned char *cache, bool kept) {
  return {x + row * h, kept ? reinterpret_cast<T *>(cache) : nullptr};
}

template <bool Centred, typename T, int N, bool Wide>
__global__ void __launch_bounds__(maxRowThreads)
    normKernel(const T *x, const T *w, const T *b, T *y, int64_t rows,
               unsigned h, float eps, unsigned rowBytes) {
  RECKON_SHARED(float, shared);
  RowTeam<Wide> team(shared);
  int64_t row = team.index();
  if (row >= rows) // a whole warp, or a whole block
    return;
  CachedRow<T> in =
      rowAt(x, row, h, room<Wide>(shared, team.inBlock, rowBytes), rowBytes);
  RowStats stats = rowStats<Centred, N>(team, h, eps, in);
  T *out = y + row * h;
  for (unsigned i = team.self * N; i < h; i += team.size * N) {
    Lanes<T, N> lanes = in.template get<N>(i), scale = loadLanes<N>(w + i);
    Lanes<T, N> shift;
    if constexpr (Centred)
      shift = loadLanes<N>(b + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float v = (toFloat(lanes.at[k]) - stats.mean) * stats.rstd *
                toFloat(scale.at[k]);
      if constexpr (Centred)
        v += toFloat(shift.at[k]);
      lanes.at[k] = fromFloat<T>(v);
    }
    storeLanes(out + i, lanes);
  }
}

template <bool Centred, typename T, int N, bool Wide>
__global__ void __launch_bounds__(maxRowThreads)
    normGradInputKernel(const T *dy, const T *x, const T *w, T *dx,
                        int64_t rows, unsigned h, float eps,
                        unsigned rowBytes) {
  RECKON_SHARED(float, shared);
  RowTeam<Wide> team(shared);
  int64_t row = team.index();
  if (row >= rows)
    return;
  unsigned char *cache = room<Wide>(shared, team.inBlock, rowBytes);
  CachedRow<T> in = rowAt(x, row, h, cache, rowBytes);
  CachedRow<T> grad = rowAt(dy, row, h, cache + rowBytes / 2, rowBytes);
  unsigned first = team.self * N, step = team.size * N;
  RowStats stats = rowStats<Centred, N>(team, h, eps, in, grad);
  float total = 0.0f, dot = 0.0f;
  for (unsigned i = first; i < h; i += step) {
    Lanes<T, N> v = in.template get<N>(i), d = grad.template get<N>(i);
    Lanes<T, N> scale = loadLanes<N>(w + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float g = toFloat(d.at[k]) * toFloat(scale.at[k]);
      total += g;
      dot += g * (toFloat(v.at[k]) - stats.mean);
    }
  }
  auto count = static_cast<float>(h);
  float mean = Centred ? team.sum(total) / count : 0.0f;
  // mean(g * n) * rstd, to be multiplied by x - mean.
  float along = team.sum(dot) * stats.rstd / count * stats.rstd;
  T *out = dx + row * h;
  for (unsigned i = first; i < h; i += step) {
    Lanes<T, N> v = in.template get<N>(i), d = grad.template get<N>(i);
    Lanes<T, N> scale = loadLanes<N>(w + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float g = toFloat(d.at[k]) * toFloat(scale.at[k]);
      float n = toFloat(v.at[k]) - stats.mean;
      d.at[k] = fromFloat<T>((g - mean - n * along) * stats.rstd);
    }
    storeLanes(out + i, d);
  }
}

template <int N> __device__ __forceinline__ void clear(float *sums) {
  Lanes<float, N> zeros;
#pragma unroll
  for (int k = 0; k < N; ++k)
    zeros.at[k] = 0.0f;
  storeLanes(sums, zeros);
}

/// How a weight gradient is summed: `parts` parts of `each` rows, with
/// cacheBytes of shared memory for a row of x and one of dy (0: not kept) and
/// sumBytes for running sums (0: kept in place).
struct PartShape {
  int64_t parts = 0, each = 0;
  unsigned cacheBytes = 0, sumBytes = 0;
};

/// Part p sums its rows, p * each and on, into row p of gw and of gb. A thread
/// adds to its own columns only.
template <bool Centred, typename T, int N, bool Wide>
__global__ void __launch_bounds__(maxRowThreads)
    normGradWeightKernel(const T *dy, const T *x, float *gw, float *gb,
                         int64_t rows, unsigned h, float eps, PartShape shape) {
  RECKON_SHARED(float, shared);
  RowTeam<Wide> team(shared);
  int64_t part = team.index();
  if (part >= shape.parts)
    return;
  unsigned char *cache =
      room<Wide>(shared, team.inBlock, shape.cacheBytes + shape.sumBytes);
  float *outW = gw + part * h, *outB = gb + part * h;
  float *sumW = outW, *sumB = outB;
  if (shape.sumBytes != 0) {
    sumW = reinterpret_cast<float *>(cache + shape.cacheBytes);
    sumB = sumW + h;
  }
  unsigned first = team.self * N, step = team.size * N;
  for (unsigned i = first; i < h; i += step) {
    clear<N>(sumW + i);
    if constexpr (Centred)
      clear<N>(sumB + i);
  }
  int64_t last = (part + 1) * shape.each;
  last = last < rows ? last : rows;
  for (int64_t row = part * shape.each; row < last; ++row) {
    CachedRow<T> in = rowAt(x, row, h, cache, shape.cacheBytes);
    CachedRow<T> grad =
        rowAt(dy, row, h, cache + shape.cacheBytes / 2, shape.cacheBytes);
    RowStats stats = rowStats<Centred, N>(team, h, eps, in, grad);
    for (unsigned i = first; i < h; i += step) {
      Lanes<T, N> v = in.template get<N>(i), d = grad.template get<N>(i);
      Lanes<float, N> sums = loadLanes<N>(sumW + i);
#pragma unroll
      for (int k = 0; k < N; ++k)
        sums.at[k] +=
            toFloat(d.at[k]) * ((toFloat(v.at[k]) - stats.mean) * stats.rstd);
      storeLanes(sumW + i, sums);
      if constexpr (Centred) {
        sums = loadLanes<N>(sumB + i);
#pragma unroll
        for (int k = 0; k < N; ++k)
          sums.at[k] += toFloat(d.at[k]);
        storeLanes(sumB + i, sums);
      }
    }
  }
  if (shape.sumBytes == 0)
    return;
  for (unsigned i = first; i < h; i += step) {
    storeLanes(outW + i, loadLanes<N>(sumW + i));
    if constexpr (Centred)
      storeLanes(outB + i, loadLanes<N>(sumB + i));
  }
}

/// Columns are counted in 32 bits, rows by the grid.
bool tooLarge(const NormSizes &sizes) {
  return sizes.rows > maxGrid || sizes.h > maxGrid;
}

/// Calls body with N and Wide as integral constants.
template <typename T, typename Body>
cudaError_t withRows(bool wideAccess, bool wideRow, Body body) {
  constexpr std::integral_constant<int, lanesOf<T>> many{};
  constexpr std::integral_constant<int, 1> one{};
  if (wideAccess)
    return wideRow ? body(many, std::true_type{})
                   : body(many, std::false_type{});
  return wideRow ? body(one, std::true_type{}) : body(one, std::false_type{});
}

template <bool Centred, typename T>
cudaError_t norm(const NormSizes &sizes, const T *x, const T *w, const T *b,
                 T *y, cudaStream_t stream) {
  if (tooLarge(sizes))
    return cudaErrorInvalidValue;
  bool wide = wideRows(sizes.h, x, w, b, y);
  RowShape shape = rowShape<T>(sizes.h, wide ? lanesOf<T> : 1, 1);
  return withRows<T>(wide, shape.wide, [&](auto n, auto block) {
    return launch(
        {shape.blocks(sizes.rows), shape.threads, shape.shared(), stream},
        normKernel<Centred, T, decltype(n)::value, decltype(block)::value>, x,
        w, b, y, sizes.rows, static_cast<unsigned>(sizes.h), sizes.eps,
        shape.rowBytes);
  });
}

template <bool Centred, typename T>
cudaError_t normGradInput(const NormSizes &sizes, const T *dy, const T *x,
                          const T *w, T *dx, cudaStream_t stream) {
  if (tooLarge(sizes))
    return cudaErrorInvalidValue;
  bool wide = wideRows(sizes.h, dy, x, w, dx);
  RowShape shape = rowShape<T>(sizes.h, wide ? lanesOf<T> : 1, 2);
  return withRows<T>(wide, shape.wide, [&](auto n, auto block) {
    return launch(
        {shape.blocks(sizes.rows), shape.threads, shape.shared(), stream},
        normGradInputKernel<Centred, T, decltype(n)::value,
                            decltype(block)::value>,
        dy, x, w, dx, sizes.rows, static_cast<unsigned>(sizes.h), sizes.eps,
        shape.rowBytes);
  });
}

/// Parts of at least 4 rows, and enough of them for the largest chip: four
/// blocks a multiprocessor, or 16 warps.
PartShape partsOf(const NormSizes &sizes, bool wideRow) {
  int64_t most = wideRow ? 512 : 2048;
  int64_t parts = (sizes.rows + 3) / 4;
  parts = parts < most ? parts : most;
  PartShape shape;
  shape.each = (sizes.rows + parts - 1) / parts;
  shape.parts = (sizes.rows + shape.each - 1) / shape.each;
  return shape;
}

template <bool Centred, typename T>
cudaError_t normGradWeight(const NormSizes &sizes, bool accumulate, const T *dy,
                           const T *x, float *gw, float *gb, void *scratch,
                           cudaStream_t stream) {
  if (tooLarge(sizes))
    return cudaErrorInvalidValue;
  constexpr int64_t kinds = Centred ? 2 : 1;
  const int64_t h = sizes.h;
  auto *partial = static_cast<float *>(scratch);
  bool wide = wideRows(h, dy, x, partial);
  RowShape row = rowShape<T>(h, wide ? lanesOf<T> : 1, 2);
  PartShape shape = partsOf(sizes, row.wide);
  shape.cacheBytes = row.rowBytes;
  int64_t sums = (h * kinds * 4 + 15) / 16 * 16;
  if ((row.rowBytes + sums) * row.rowsInBlock <= maxRowShared)
    shape.sumBytes = static_cast<unsigned>(sums);
  float *partialB = partial + shape.parts * h;
  cudaError_t error = withRows<T>(wide, row.wide, [&](auto n, auto block) {
    return launch({row.blocks(shape.parts), row.threads,
                   row.shared(shape.sumBytes), stream},
                  normGradWeightKernel<Centred, T, decltype(n)::value,
                                       decltype(block)::value>,
                  dy, x, partial, Centred ? partialB : partial, sizes.rows,
                  static_cast<unsigned>(h), sizes.eps, shape);
  });
  if (error == cudaSuccess)
    error = columnSums(partial, shape.parts, h, gw, accumulate, stream);
  if (Centred && error == cudaSuccess)
    error = columnSums(partialB, shape.parts, h, gb, accumulate, stream);
  return error;
}

/// Whichever way the rows are dealt out.
int64_t gradWeightScratch(const NormSizes &sizes, int64_t kinds) {
  if (sizes.rows == 0)
    return 0;
  int64_t parts = partsOf(sizes, sizes.h > 128 * lanesOf<Bf16>).parts;
  return kinds * parts * sizes.h * static_cast<int64_t>(sizeof(float));
}

} // namespace

cudaError_t rmsNorm(Storage storage, const NormSizes &sizes, const void *x,
                    const void *w, void *y, cudaStream_t stream) {
  if (sizes.rows == 0)
    return cudaSuccess;
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return norm<false, T>(sizes, static_cast<const T *>(x),
                          static_cast<const T *>(w), nullptr,
                          static_cast<T *>(y), stream);
  });
}

cudaError_t rmsNormGradInput(Storage storage, const NormSizes &sizes,
                             const void *dy, const void *x, const void *w,
                             void *dx, cudaStream_t stream) {
  if (sizes.rows == 0)
    return cudaSuccess;
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return normGradInput<false, T>(
        sizes, static_cast<const T *>(dy), static_cast<const T *>(x),
        static_cast<const T *>(w), static_cast<T *>(dx), stream);
  });
}

int64_t rmsNormGradWeightScratch(const NormSizes &sizes) {
  return gradWeightScratch(sizes, 1);
}

cudaError_t rmsNormGradWeight(Storage storage, const NormSizes &sizes,
                              bool accumulate, const void *dy, const void *x,
                              float *gw, void *scratch, cudaStream_t stream) {
  if (sizes.rows == 0)
    return accumulate ? cudaSuccess : fillZero(gw, sizes.h * 4, stream);
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return normGradWeight<false, T>(
        sizes, accumulate, static_cast<const T *>(dy),
        static_cast<const T *>(x), gw, nullptr, scratch, stream);
  });
}

cudaError_t layerNorm(Storage storage, const NormSizes &sizes, const void *x,
                      const void *w, const void *b, void *y,
                      cudaStream_t stream) {
  if (sizes.rows == 0)
    return cudaSuccess;
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return norm<true, T>(sizes, static_cast<const T *>(x),
                         static_cast<const T *>(w), static_cast<const T *>(b),
                         static_cast<T *>(y), stream);
  });
}

cudaError_t layerNormGradInput(Storage storage, const NormSizes &sizes,
                               const void *dy, const void *x, const void *w,
                               void *dx, cudaStream_t stream) {
  if (sizes.rows == 0)
    return cudaSuccess;
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return normGradInput<true, T>(
        sizes, static_cast<const T *>(dy), static_cast<const T *>(x),
        static_cast<const T *>(w), static_cast<T *>(dx), stream);
  });
}

int64_t layerNormGradWeightScratch(const NormSizes &sizes) {
  return gradWeightScratch(sizes, 2);
}

cudaError_t layerNormGradWeight(Storage storage, const NormSizes &sizes,
                                bool accumulate, const void *dy, const void *x,
                                float *gw, float *gb, void *scratch,
                                cudaStream_t stream) {
  if (sizes.rows == 0) {
    if (accumulate)
      return cudaSuccess;
    cudaError_t error = fillZero(gw, sizes.h * 4, stream);
    return error == cudaSuccess ? fillZero(gb, sizes.h * 4, stream) : error;
  }
  return withStorage(storage, [&](auto *type) {
    using T = std::remove_pointer_t<decltype(type)>;
    return normGradWeight<true, T>(
        sizes, accumulate, static_cast<const T *>(dy),
        static_cast<const T *>(x), gw, gb, scratch, stream);
  });
}

} // namespace reckon::cuda
