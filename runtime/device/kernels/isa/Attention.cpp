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
void packTransposed(const float *from, int64_t ld, int64_t count, int64_t d,
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

} // namespace

int64_t attentionScratch(const AttentionSizes &sizes, bool backward) {
  return backward ? 3 * sizes.d * B + 2 * B * B + 2 * B
                  : 2 * sizes.d * B + B * B + 2 * B;
}

void attentionForward(const AttentionForward &call, int64_t sequence,
                      int64_t head, int64_t block, float *scratch) {
  const auto [hq, hkv, d, s] = call.sizes;
  const int64_t ldq = hq * d, ldk = hkv * d;
  const int64_t kvHead = head / (hq / hkv);
  const int64_t first = block * B, count = smaller(B, s - first);
  const int64_t lanes = padded(count);
  const float scale = scaleOf(call.sizes);
  const float *q = call.q + (sequence * s + first) * ldq + head * d;
  const float *keys = call.k + sequence * s * ldk + kvHead * d;
  const float *values = call.v + sequence * s * ldk + kvHead * d;

  float *qt = scratch;     // [d, B]
  float *ot = qt + d * B;  // [d, B]
  float *st = ot + d * B;  // [B, B], key by query
  float *top = st + B * B; // running maximum of the scaled scores
  float *total = top + B;  // running sum of exponentials
  packTransposed(q, ldq, count, d, qt);
  for (int64_t i = 0; i < lanes; i += W) {
    store(top + i, splat(-__builtin_inff()));
    store(total + i, F{});
  }

  for (int64_t start = 0; start < first + count; start += B) {
    const float *k = keys + start * ldk, *v = values + start * ldk;
    const bool diagonal = start == first;
    forParts(diagonal, count, smaller(B, s - start), [=](const Part &part) {
      gemm<Left::Rows>(part.keys, part.lanes, d, k, ldk, qt + part.first, B,
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
      gemm<Left::Columns>(d, part.lanes, part.keys, v, ldk, st + part.first, B,
                          ot + part.first, B, start > 0);
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

void attentionBackward(const AttentionBackward &call, int64_t sequence,
                       int64_t kvHead, float *scratch) {
  const auto [hq, hkv, d, s] = call.sizes;
  const int64_t ldq = hq * d, ldk = hkv * d, group = hq / hkv;
  const float scale = scaleOf(call.sizes);
  const int64_t kvBase = sequence * s * ldk + kvHead * d;
  const float *keys = call.k + kvBase, *values = call.v + kvBase;
  float *dKeys = call.dk + kvBase, *dValues = call.dv + kvBase;

  float *qt = scratch;      // [d, B]
  float *dot = qt + d * B;  // [d, B], dO transposed
  float *dqt = dot + d * B; // [d, B]
  float *pt = dqt + d * B;  // [B, B], key by query: P
  float *dst = pt + B * B;  // [B, B]: dP, then dS
  float *lseLanes = dst + B * B;
  float *deltaLanes = lseLanes + B;

  for (int64_t t = 0; t < s; ++t)
    for (int64_t j = 0; j < d; ++j)
      dKeys[t * ldk + j] = dValues[t * ldk + j] = 0.0f;

  for (int64_t head = kvHead * group; head < (kvHead + 1) * group; ++head)
    for (int64_t first = 0; first < s; first += B) {
      const int64_t count = smaller(B, s - first), lanes = padded(count);
      const int64_t base = (sequence * s + first) * ldq + head * d;
      const float *q = call.q + base, *dO = call.dO + base;
      const float *lse = call.lse + (sequence * hq + head) * s + first;
      float *delta = call.delta + (sequence * hq + head) * s + first;
      packTransposed(q, ldq, count, d, qt);
      packTransposed(dO, ldq, count, d, dot);
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
        const float *k = keys + start * ldk, *v = values + start * ldk;
        float *dk = dKeys + start * ldk, *dv = dValues + start * ldk;
        const bool diagonal = start == first;
        forParts(diagonal, count, smaller(B, s - start), [=](const Part &part) {
          const int64_t f = part.first;
          gemm<Left::Rows>(part.keys, part.lanes, d, k, ldk, qt + f, B, pt + f,
                           B, false);
          gemm<Left::Rows>(part.keys, part.lanes, d, v, ldk, dot + f, B,
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
          gemm<Left::Rows>(part.keys, d, part.count, pt + f, B, dO + f * ldq,
                           ldq, dv, ldk, true);
          gemm<Left::Rows>(part.keys, d, part.count, dst + f, B, q + f * ldq,
                           ldq, dk, ldk, true);
          gemm<Left::Columns>(d, part.lanes, part.keys, k, ldk, dst + f, B,
                              dqt + f, B, start > 0);
        });
      }
      transpose(dqt, B, d, count, call.dq + base, ldq);
    }
}

} // namespace reckon::device::RECKON_ISA
