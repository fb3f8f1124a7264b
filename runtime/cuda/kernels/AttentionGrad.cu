//===- AttentionGrad.cu - causal attention, backward ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Two kernels that recompute the probabilities from lse. In the first a block
// owns 64 queries, meets keys and writes dq (and delta, which the second
// reads); in the second it owns 64 keys of a key head, meets the queries of all
// heads of its group and writes dk and dv. Every result has one writer that
// adds in a fixed order. With P the probabilities and dP = dO V^T:
//   dV = P^T dO,  dS = P (dP - delta),  dQ = scale dS K,  dK = scale dS^T Q.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/kernels/AttentionTiles.cuh"

namespace reckon::cuda {

namespace attention {

template <typename T> struct Backward {
  Sizes sizes;
  const T *dO, *q, *k, *v, *o;
  const float *lse;
  T *dq, *dk, *dv;
  float *delta;
};

/// Row sums of dO * o for this thread's four own rows.
template <int C, typename T>
__device__ void rowProducts(float (&delta)[4], const float *dO, const T *o,
                            int own, const Sizes &z) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float sum = 0.0f;
#pragma unroll
    for (int c = 0; c < C; ++c)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        // Neighbouring lanes read neighbouring elements.
        int column = laneX() + 16 * e + 64 * c;
        if (own + i < z.s && column < z.d)
          sum += dO[(laneY() * 4 + i) * z.stride + column] *
                 toFloat(o[(own + i) * z.queryStride + column]);
      }
    delta[i] = sumOfRow(sum);
  }
}

template <typename T, int C>
__global__ void __launch_bounds__(threads, residentBlocks<C>)
    attentionQueryGradKernel(Backward<T> call) {
  constexpr int L = metRows<C>, N = L / 16;
  const Sizes &z = call.sizes;
  RECKON_SHARED(float, shared);
  float *queries = shared, *dO = queries + ownRows * z.stride;
  float *keys = dO + ownRows * z.stride, *values = keys + L * z.stride;
  float *weights = values + L * z.stride;

  int heads = z.batch * z.hq, which = static_cast<int>(blockIdx.x) % heads;
  int turn = static_cast<int>(blockIdx.x) / heads;
  int first = ((z.s + ownRows - 1) / ownRows - 1 - turn) * ownRows;
  int sequence = which / z.hq, head = which % z.hq;
  int64_t atQuery = z.queries(sequence, head);
  int64_t atKey = z.keys(sequence, head / z.group);
  int64_t atRow = int64_t(which) * z.s;
  int own = first + laneY() * 4;
  int end = first + ownRows < z.s ? first + ownRows : z.s;
  float scale2 = z.scale * log2e;

  loadTile<ownRows>(queries, call.q + atQuery, first, z.queryStride, z);
  loadTile<ownRows>(dO, call.dO + atQuery, first, z.queryStride, z);
  __syncthreads();
  float delta[4], lse2[4];
  rowProducts<C>(delta, dO, call.o + atQuery, own, z);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    bool there = own + i < z.s;
    lse2[i] = there ? call.lse[atRow + own + i] * log2e : INFINITY;
    if (there && laneX() == 0)
      call.delta[atRow + own + i] = delta[i];
  }

  Result4<C> dq;
  for (int met = 0; met < end; met += L) {
    __syncthreads(); // the last round's tiles are no longer read
    loadTile<L>(keys, call.k + atKey, met, z.keyStride, z);
    loadTile<L>(values, call.v + atKey, met, z.keyStride, z);
    __syncthreads();

    float s[4][N] = {}, dP[4][N] = {};
    if (own < z.s) {
      addScores<N>(s, queries, keys, z);
      addScores<N>(dP, dO, values, z);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < N; ++j) {
        bool seen = met + laneX() + 16 * j <= own + i;
        float p = seen ? exp2f(s[i][j] * scale2 - lse2[i]) : 0.0f;
        s[i][j] = p * (dP[i][j] - delta[i]);
      }
    putWeights<C>(weights, s);
    __syncwarp();
    int count = end - met < L ? end - met : L;
    if (own < z.s)
      addWeighted(dq, weights, keys, count, z);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (own + i < z.s)
      storeRow<C>(call.dq + atQuery + (own + i) * z.queryStride, dq.at[i],
                  z.scale, z);
}

template <typename T, int C>
__global__ void __launch_bounds__(threads, residentBlocks<C>)
    attentionKeyGradKernel(Backward<T> call) {
  constexpr int L = metRows<C>, N = L / 16;
  const Sizes &z = call.sizes;
  RECKON_SHARED(float, shared);
  float *keys = shared, *values = keys + ownRows * z.stride;
  float *queries = values + ownRows * z.stride, *dO = queries + L * z.stride;
  float *weights = dO + L * z.stride;

  // Early keys meet most queries: they start first.
  int heads = z.batch * z.hkv, which = static_cast<int>(blockIdx.x) % heads;
  int first = static_cast<int>(blockIdx.x) / heads * ownRows;
  int sequence = which / z.hkv, keyHead = which % z.hkv;
  int64_t atKey = z.keys(sequence, keyHead);
  int own = first + laneY() * 4;
  float scale2 = z.scale * log2e;

  loadTile<ownRows>(keys, call.k + atKey, first, z.keyStride, z);
  loadTile<ownRows>(values, call.v + atKey, first, z.keyStride, z);

  Result4<C> dk, dv;
  for (int member = 0; member < z.group; ++member) {
    int head = keyHead * z.group + member;
    int64_t atQuery = z.queries(sequence, head);
    int64_t atRow = (int64_t(sequence) * z.hq + head) * z.s;
    for (int met = first; met < z.s; met += L) {
      __syncthreads(); // the last round's tiles are no longer read
      loadTile<L>(queries, call.q + atQuery, met, z.queryStride, z);
      loadTile<L>(dO, call.dO + atQuery, met, z.queryStride, z);
      float lse2[N], delta[N];
#pragma unroll
      for (int j = 0; j < N; ++j) {
        int row = met + laneX() + 16 * j;
        bool there = row < z.s;
        // An infinite sum: rows beyond the sequence have probability 0.
        lse2[j] = there ? call.lse[atRow + row] * log2e : INFINITY;
        delta[j] = there ? call.delta[atRow + row] : 0.0f;
      }
      __syncthreads();

      float p[4][N] = {}, dS[4][N] = {};
      if (own < z.s) {
        addScores<N>(p, keys, queries, z);
        addScores<N>(dS, values, dO, z);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < N; ++j) {
          bool seen = own + i <= met + laneX() + 16 * j;
          p[i][j] = seen ? exp2f(p[i][j] * scale2 - lse2[j]) : 0.0f;
          dS[i][j] = p[i][j] * (dS[i][j] - delta[j]);
        }
      int count = z.s - met < L ? z.s - met : L;
      putWeights<C>(weights, p);
      __syncwarp();
      if (own < z.s)
        addWeighted(dv, weights, dO, count, z);
      __syncwarp(); // before the tile of weights is written again
      putWeights<C>(weights, dS);
      __syncwarp();
      if (own < z.s)
        addWeighted(dk, weights, queries, count, z);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (own + i < z.s) {
      int64_t at = atKey + (own + i) * z.keyStride;
      storeRow<C>(call.dk + at, dk.at[i], z.scale, z);
      storeRow<C>(call.dv + at, dv.at[i], 1.0f, z);
    }
}

template <typename T>
cudaError_t backward(const AttentionShape &shape, const AttentionBackward &p,
                     cudaStream_t stream) {
  bool aligned = aligned16(p.dO, p.q, p.k, p.v, p.o, p.dq, p.dk, p.dv);
  Backward<T> call{makeSizes<T>(shape, aligned),
                   static_cast<const T *>(p.dO),
                   static_cast<const T *>(p.q),
                   static_cast<const T *>(p.k),
                   static_cast<const T *>(p.v),
                   static_cast<const T *>(p.o),
                   p.lse,
                   static_cast<T *>(p.dq),
                   static_cast<T *>(p.dk),
                   static_cast<T *>(p.dv),
                   p.delta};
  unsigned blocks = static_cast<unsigned>(attentionBlocks(shape));
  unsigned keyBlocks = blocks / static_cast<unsigned>(call.sizes.group);
  return withChunks(call.sizes.d, [&](auto chunks) {
    constexpr int C = decltype(chunks)::value;
    size_t shared = sharedBytes<C>(call.sizes.d, 2, 2);
    cudaError_t error = launch({blocks, threads, shared, stream},
                               attentionQueryGradKernel<T, C>, call);
    if (error != cudaSuccess)
      return error;
    return launch({keyBlocks, threads, shared, stream},
                  attentionKeyGradKernel<T, C>, call);
  });
}

} // namespace attention

size_t attentionBackwardShared(const AttentionShape &shape) {
  int d = static_cast<int>(shape.d);
  return attention::withChunks(d, [=](auto chunks) {
    return attention::sharedBytes<decltype(chunks)::value>(d, 2, 2);
  });
}

cudaError_t attentionBackward(const AttentionShape &shape,
                              const AttentionBackward &operands,
                              cudaStream_t stream) {
  if (attentionBlocks(shape) == 0)
    return cudaSuccess;
  return shape.dtype == device::DType::BF16
             ? attention::backward<Bf16>(shape, operands, stream)
             : attention::backward<float>(shape, operands, stream);
}

} // namespace reckon::cuda
