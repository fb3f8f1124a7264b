//===- Attention.cpp - causal attention by blocks, forward and backward ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Online softmax over blocks of keys (Dao et al., FlashAttention), arranged for
// vectors: queries lie along the lanes. A block of queries is transposed once,
// scores are kept as S^T[key, query] and the output as O^T[d, query]. So both
// products broadcast a scalar of K or V, which need no packing, and the maxima,
// sums and rescaling of the softmax are plain vector operations without any
// reduction across lanes. A block of scores is 64 x 64; nothing grows with the
// square of the sequence.
//
// Backward, per key head, with P = exp(S * scale - lse), delta = rowsum(dO *
// O):
//   dV += P^T dO     dS = P * (dO V^T - delta) * scale
//   dK += dS^T Q     dQ += dS K
// The order of all sums is fixed.
//
// Operands stored as bf16 are widened block by block; dK and dV are summed in
// f32 for the whole key head and rounded at its end. P and dS stay f32.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Gemm.h"
#include "runtime/device/kernels/isa/Rows.h"

namespace reckon::device::RECKON_ISA {

namespace {

constexpr int64_t B = attentionBlock;
static_assert(B % (4 * W) == 0 || B % (2 * W) == 0);

RECKON_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
RECKON_INLINE int64_t padded(int64_t n) { return (n + W - 1) / W * W; }

float scaleOf(const AttentionSizes &sizes) {
  return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(sizes.d)));
}

/// to[d, lanes] = from[count, d] transposed; lanes past count are zero.
template <typename T>
void packTransposed(const T *from, int64_t ld, int64_t count, int64_t d,
                    float *to) {
  transpose(from, ld, count, d, to, B);
  int64_t lanes = padded(count);
  if (lanes != count)
    for (int64_t i = 0; i < d; ++i)
      for (int64_t q = count; q < lanes; ++q)
        to[i * B + q] = 0.0f;
}

/// Queries [first, first + lanes) of a block, `count` of them real, and the
/// first `keys` keys that it meets.
struct Part {
  int64_t first, lanes, count, keys;
};

/// Calls body for the parts of one block of scores. Off the diagonal that is
/// the whole block. On it, queries go in groups of two vectors, each with the
/// keys up to its last query: less is computed only to be masked.
template <typename Body>
RECKON_INLINE void forParts(bool diagonal, int64_t count, int64_t keys,
                            Body body) {
  constexpr int64_t group = 2 * W;
  if (!diagonal)
    return body(Part{0, padded(count), count, keys});
  for (int64_t first = 0; first < count; first += group) {
    int64_t own = smaller(group, count - first);
    body(Part{first, padded(own), own, smaller(keys, first + own)});
  }
}

/// In a part on the diagonal, keys after the query do not count.
void mask(float *scores, const Part &part) {
  for (int64_t k = part.first + 1; k < part.keys; ++k)
    for (int64_t q = part.first; q < smaller(k, part.first + part.lanes); ++q)
      scores[k * B + q] = -__builtin_inff();
}

/// Rows of f32 with their distance.
template <typename P> struct Rows {
  P *at;
  int64_t ld;
};

/// rows x d of `from` as f32: where they are, or in `room`.
RECKON_INLINE Rows<const float> widened(const float *from, int64_t ld, int64_t,
                                        int64_t, float *) {
  return {from, ld};
}
RECKON_INLINE Rows<const float> widened(const Bf16 *from, int64_t ld,
                                        int64_t rows, int64_t d, float *room) {
  for (int64_t r = 0; r < rows; ++r)
    widen(from + r * ld, room + r * d, d);
  return {room, d};
}

/// Where rows of a result are summed in f32: in place, or in `room`.
RECKON_INLINE Rows<float> sums(float *to, int64_t ld, int64_t, float *) {
  return {to, ld};
}
RECKON_INLINE Rows<float> sums(Bf16 *, int64_t, int64_t d, float *room) {
  return {room, d};
}
RECKON_INLINE void finish(Rows<float>, int64_t, int64_t, float *, int64_t) {}
RECKON_INLINE void finish(Rows<float> sums, int64_t rows, int64_t d, Bf16 *to,
                          int64_t ld) {
  for (int64_t r = 0; r < rows; ++r)
    narrow(sums.at + r * sums.ld, to + r * ld, d);
}

template <typename T> constexpr bool isWide = sizeof(T) == sizeof(float);

} // namespace

template <typename T>
int64_t Attention<T>::scratch(const AttentionSizes &sizes, bool backward) {
  const auto [hq, hkv, d, s] = sizes;
  if (backward)
    return 3 * d * B + 2 * B * B + 2 * B +
           (isWide<T> ? 0 : 4 * B * d + 2 * s * d);
  return 2 * d * B + B * B + 2 * B + (isWide<T> ? 0 : 2 * B * d);
}

template <typename T>
void Attention<T>::forward(const AttentionForward<T> &call, int64_t sequence,
                           int64_t head, int64_t block, float *scratch) {
  const auto [hq, hkv, d, s] = call.sizes;
  const int64_t ldq = hq * d, ldk = hkv * d;
  const int64_t kvHead = head / (hq / hkv);
  const int64_t first = block * B, count = smaller(B, s - first);
  const int64_t lanes = padded(count);
  const float scale = scaleOf(call.sizes);
  const T *q = call.q + (sequence * s + first) * ldq + head * d;
  const T *keys = call.k + sequence * s * ldk + kvHead * d;
  const T *values = call.v + sequence * s * ldk + kvHead * d;

  float *qt = scratch;     // [d, B]
  float *ot = qt + d * B;  // [d, B]
  float *st = ot + d * B;  // [B, B], key by query
  float *top = st + B * B; // running maximum of the scaled scores
  float *total = top + B;  // running sum of exponentials
  float *roomK = total + B, *roomV = roomK + B * d; // bf16 only
  packTransposed(q, ldq, count, d, qt);
  for (int64_t i = 0; i < lanes; i += W) {
    store(top + i, splat(-__builtin_inff()));
    store(total + i, F{});
  }

  for (int64_t start = 0; start < first + count; start += B) {
    const bool diagonal = start == first;
    const int64_t numKeys = smaller(B, s - start);
    const auto k = widened(keys + start * ldk, ldk, numKeys, d, roomK);
    const auto v = widened(values + start * ldk, ldk, numKeys, d, roomV);
    forParts(diagonal, count, numKeys, [=](const Part &part) {
      gemm<Left::Rows>(part.keys, part.lanes, d, k.at, k.ld, qt + part.first, B,
                       st + part.first, B, false);
      if (diagonal)
        mask(st, part);
      for (int64_t i = part.first; i < part.first + part.lanes; i += W) {
        F best = load(st + i);
        for (int64_t key = 1; key < part.keys; ++key)
          best = max(best, load(st + key * B + i));
        const F before = load(top + i);
        const F now = max(before, best * scale);
        F sums{};
        for (int64_t key = 0; key < part.keys; ++key) {
          F p = exp(load(st + key * B + i) * scale - now);
          sums += p;
          store(st + key * B + i, p);
        }
        const F keep = exp(before - now);
        store(total + i, load(total + i) * keep + sums);
        store(top + i, now);
        if (start > 0)
          for (int64_t j = 0; j < d; ++j)
            store(ot + j * B + i, load(ot + j * B + i) * keep);
      }
      gemm<Left::Columns>(d, part.lanes, part.keys, v.at, v.ld, st + part.first,
                          B, ot + part.first, B, start > 0);
    });
  }

  for (int64_t i = 0; i < lanes; i += W) {
    const F inverse = 1.0f / load(total + i);
    for (int64_t j = 0; j < d; ++j)
      store(ot + j * B + i, load(ot + j * B + i) * inverse);
    store(top + i, load(top + i) + log(load(total + i)));
  }
  transpose(ot, B, d, count, call.o + (sequence * s + first) * ldq + head * d,
            ldq);
  float *lse = call.lse + (sequence * hq + head) * s + first;
  for (int64_t i = 0; i < count; ++i)
    lse[i] = top[i];
}

template <typename T>
void Attention<T>::backward(const AttentionBackward<T> &call, int64_t sequence,
                            int64_t kvHead, float *scratch) {
  const auto [hq, hkv, d, s] = call.sizes;
  const int64_t ldq = hq * d, ldk = hkv * d, group = hq / hkv;
  const float scale = scaleOf(call.sizes);
  const int64_t kvBase = sequence * s * ldk + kvHead * d;
  const T *keys = call.k + kvBase, *values = call.v + kvBase;

  float *qt = scratch;      // [d, B]
  float *dot = qt + d * B;  // [d, B], dO transposed
  float *dqt = dot + d * B; // [d, B]
  float *pt = dqt + d * B;  // [B, B], key by query: P
  float *dst = pt + B * B;  // [B, B]: dP, then dS
  float *lseLanes = dst + B * B;
  float *deltaLanes = lseLanes + B;
  // The rest is for bf16 only.
  float *roomQ = deltaLanes + B, *roomO = roomQ + B * d;   // [B, d]
  float *roomK = roomO + B * d, *roomV = roomK + B * d;    // [B, d]
  float *roomDk = roomV + B * d, *roomDv = roomDk + s * d; // [s, d]

  const Rows<float> dKeys = sums(call.dk + kvBase, ldk, d, roomDk);
  const Rows<float> dValues = sums(call.dv + kvBase, ldk, d, roomDv);
  for (int64_t t = 0; t < s; ++t)
    for (int64_t j = 0; j < d; ++j)
      dKeys.at[t * dKeys.ld + j] = dValues.at[t * dValues.ld + j] = 0.0f;

  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (int64_t first = 0; first < s; first += B) {
      const int64_t count = smaller(B, s - first), lanes = padded(count);
      const int64_t base = (sequence * s + first) * ldq + head * d;
      const float *lse = call.lse + (sequence * hq + head) * s + first;
      float *delta = call.delta + (sequence * hq + head) * s + first;
      const auto q = widened(call.q + base, ldq, count, d, roomQ);
      const auto dO = widened(call.dO + base, ldq, count, d, roomO);
      packTransposed(q.at, q.ld, count, d, qt);
      packTransposed(dO.at, dO.ld, count, d, dot);
      // O^T is needed once, for delta; dqt is free until the products.
      packTransposed(call.o + base, ldq, count, d, dqt);
      for (int64_t i = 0; i < lanes; i += W) {
        F rows{};
        for (int64_t j = 0; j < d; ++j)
          rows += load(dot + j * B + i) * load(dqt + j * B + i);
        store(deltaLanes + i, rows);
      }
      for (int64_t i = 0; i < lanes; ++i) {
        if (i < count)
          delta[i] = deltaLanes[i];
        lseLanes[i] = i < count ? lse[i] : 0.0f;
      }

      for (int64_t start = 0; start < first + count; start += B) {
        float *dk = dKeys.at + start * dKeys.ld;
        float *dv = dValues.at + start * dValues.ld;
        const bool diagonal = start == first;
        const int64_t numKeys = smaller(B, s - start);
        const auto k = widened(keys + start * ldk, ldk, numKeys, d, roomK);
        const auto v = widened(values + start * ldk, ldk, numKeys, d, roomV);
        forParts(diagonal, count, numKeys, [=](const Part &part) {
          const int64_t f = part.first;
          gemm<Left::Rows>(part.keys, part.lanes, d, k.at, k.ld, qt + f, B,
                           pt + f, B, false);
          gemm<Left::Rows>(part.keys, part.lanes, d, v.at, v.ld, dot + f, B,
                           dst + f, B, false);
          if (diagonal)
            mask(pt, part);
          for (int64_t key = 0; key < part.keys; ++key)
            for (int64_t i = f; i < f + part.lanes; i += W) {
              float *p = pt + key * B + i, *ds = dst + key * B + i;
              F probability = exp(load(p) * scale - load(lseLanes + i));
              store(p, probability);
              store(ds,
                    probability * (load(ds) - load(deltaLanes + i)) * scale);
            }
          gemm<Left::Rows>(part.keys, d, part.count, pt + f, B,
                           dO.at + f * dO.ld, dO.ld, dv, dValues.ld, true);
          gemm<Left::Rows>(part.keys, d, part.count, dst + f, B,
                           q.at + f * q.ld, q.ld, dk, dKeys.ld, true);
          gemm<Left::Columns>(d, part.lanes, part.keys, k.at, k.ld, dst + f, B,
                              dqt + f, B, start > 0);
        });
      }
      transpose(dqt, B, d, count, call.dq + base, ldq);
    }
  finish(dKeys, s, d, call.dk + kvBase, ldk);
  finish(dValues, s, d, call.dv + kvBase, ldk);
}

template struct Attention<float>;
template struct Attention<Bf16>;

} // namespace reckon::device::RECKON_ISA
