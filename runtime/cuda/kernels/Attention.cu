//===- Attention.cu - causal attention, forward ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A block owns 64 queries of one head and meets the keys up to the last of
// them in order, with an online softmax: scores exist as one tile only.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/AttentionTiles.cuh"

namespace reckon::cuda {

namespace attention {

template <typename T> struct Forward {
  Sizes sizes;
  const T *q, *k, *v;
  T *o;
  float *lse;
};

template <typename T, int C>
__global__ void __launch_bounds__(threads, residentBlocks<C>)
    attentionKernel(Forward<T> call) {
  constexpr int L = metRows<C>, N = L / 16;
  const Sizes &z = call.sizes;
  RECKON_SHARED(float, shared);
  float *queries = shared, *keys = queries + ownRows * z.stride;
  float *values = keys + L * z.stride, *weights = values + L * z.stride;

  // Late queries meet most keys: they start first.
  int heads = z.batch * z.hq, which = static_cast<int>(blockIdx.x) % heads;
  int turn = static_cast<int>(blockIdx.x) / heads;
  int first = ((z.s + ownRows - 1) / ownRows - 1 - turn) * ownRows;
  int sequence = which / z.hq, head = which % z.hq;
  int64_t atQuery = z.queries(sequence, head);
  int64_t atKey = z.keys(sequence, head / z.group);
  int own = first + laneY() * 4; // this thread's first row
  int end = first + ownRows < z.s ? first + ownRows : z.s;
  float scale2 = z.scale * log2e;

  loadTile<ownRows>(queries, call.q + atQuery, first, z.queryStride, z);
  Result4<C> o;
  float top[4], total[4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    top[i] = -INFINITY;

  for (int met = 0; met < end; met += L) {
    __syncthreads(); // the last round's tiles are no longer read
    loadTile<L>(keys, call.k + atKey, met, z.keyStride, z);
    loadTile<L>(values, call.v + atKey, met, z.keyStride, z);
    __syncthreads();

    float s[4][N] = {};
    if (own < z.s)
      addScores<N>(s, queries, keys, z);
    if (met + L > first + 1) {
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (met + laneX() + 16 * j > own + i)
            s[i][j] = -INFINITY;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      // Every query meets key 0 in the first round: `most` is a number.
      float most = top[i];
#pragma unroll
      for (int j = 0; j < N; ++j)
        most = fmaxf(most, s[i][j]);
      most = maxOfRow(most);
      float keep = exp2f((top[i] - most) * scale2);
      top[i] = most;
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < N; ++j)
        sum += s[i][j] = exp2f((s[i][j] - most) * scale2);
      total[i] = total[i] * keep + sum; // this lane's keys only
#pragma unroll
      for (int c = 0; c < C; ++c)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          o.at[i][c][e] *= keep;
    }
    putWeights<C>(weights, s);
    __syncwarp();
    int count = end - met < L ? end - met : L;
    if (own < z.s)
      addWeighted(o, weights, values, count, z);
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float sum = sumOfRow(total[i]);
    if (own + i >= z.s)
      continue;
    storeRow<C>(call.o + atQuery + (own + i) * z.queryStride, o.at[i],
                1.0f / sum, z);
    if (laneX() == 0)
      call.lse[int64_t(which) * z.s + own + i] = top[i] * z.scale + logf(sum);
  }
}

template <typename T>
cudaError_t forward(const AttentionShape &shape, const AttentionForward &p,
                    cudaStream_t stream) {
  Forward<T> call{makeSizes<T>(shape, aligned16(p.q, p.k, p.v, p.o)),
                  static_cast<const T *>(p.q),
                  static_cast<const T *>(p.k),
                  static_cast<const T *>(p.v),
                  static_cast<T *>(p.o),
                  p.lse};
  unsigned blocks = static_cast<unsigned>(attentionBlocks(shape));
  return withChunks(call.sizes.d, [&](auto chunks) {
    constexpr int C = decltype(chunks)::value;
    return launch({blocks, threads, sharedBytes<C>(call.sizes.d, 1, 2), stream},
                  attentionKernel<T, C>, call);
  });
}

} // namespace attention

size_t attentionForwardShared(const AttentionShape &shape) {
  int d = static_cast<int>(shape.d);
  return attention::withChunks(d, [=](auto chunks) {
    return attention::sharedBytes<decltype(chunks)::value>(d, 1, 2);
  });
}

cudaError_t attentionForward(const AttentionShape &shape,
                             const AttentionForward &operands,
                             cudaStream_t stream) {
  if (attentionBlocks(shape) == 0)
    return cudaSuccess;
  return shape.dtype == device::DType::BF16
             ? attention::forward<Bf16>(shape, operands, stream)
             : attention::forward<float>(shape, operands, stream);
}

} // namespace reckon::cuda
