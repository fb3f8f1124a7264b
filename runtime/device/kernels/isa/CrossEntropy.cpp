//===- CrossEntropy.cpp - one shard's share of the loss -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/isa/Rows.h"

namespace reckon::device::RECKON_ISA {

template <typename T>
void CrossEntropy<T>::rowMax(const T *logits, float *max, int64_t rows,
                             int64_t v, int64_t valid) {
  const float lowest = -__builtin_inff();
  for (int64_t r = 0; r < rows; ++r, logits += v) {
    F a = splat(lowest), b = a;
    int64_t i = 0;
    for (; i + 2 * W <= valid; i += 2 * W) {
      a = RECKON_ISA::max(a, load(logits + i));
      b = RECKON_ISA::max(b, load(logits + i + W));
    }
    for (; i < valid; i += W)
      a = RECKON_ISA::max(a, valid - i >= W
                                 ? load(logits + i)
                                 : loadPart(logits + i, valid - i, lowest));
    max[r] = maxLane(RECKON_ISA::max(a, b));
  }
}

template <typename T>
void CrossEntropy<T>::rowSums(const T *logits, const int32_t *targets,
                              const float *max, float *sums, float *terms,
                              int64_t rows, int64_t v, int64_t valid,
                              int64_t offset) {
  // Lane sums go to f64 every 64 vectors, so that the error does not grow with
  // the vocabulary.
  for (int64_t r = 0; r < rows; ++r, logits += v) {
    double total = 0.0;
    int64_t i = 0;
    while (i + W <= valid) {
      int64_t stop = i + 64 * W < valid ? i + 64 * W : valid;
      F part{};
      for (; i + W <= stop; i += W)
        part += exp(load(logits + i) - max[r]);
      total += sum(part);
    }
    if (i < valid)
      total +=
          sum(exp(loadPart(logits + i, valid - i, -__builtin_inff()) - max[r]));
    sums[r] = static_cast<float>(total);
    int64_t target = targets[r] - offset;
    terms[r] =
        target >= 0 && target < valid ? load1(logits + target) - max[r] : 0.0f;
  }
}

template <typename T>
void CrossEntropy<T>::grad(const T *logits, const int32_t *targets,
                           const float *lse, T *dlogits, int64_t rows,
                           int64_t v, int64_t valid, int64_t offset,
                           float scale) {
  for (int64_t r = 0; r < rows; ++r, logits += v, dlogits += v) {
    int64_t target = targets[r] - offset;
    bool owned = target >= 0 && target < valid;
    // The target's own value, before an in-place store overwrites it.
    F own = splat(owned ? load1(logits + target) - lse[r] : 0.0f);
    int64_t i = 0;
    for (; i + W <= valid; i += W)
      store(dlogits + i, exp(load(logits + i) - lse[r]) * scale);
    if (i < valid)
      storePart(dlogits + i,
                exp(loadPart(logits + i, valid - i) - lse[r]) * scale,
                valid - i);
    if (owned)
      store1(dlogits + target, (exp(own)[0] - 1.0f) * scale);
    for (i = valid; i < v; ++i)
      store1(dlogits + i, 0.0f);
  }
}

template struct CrossEntropy<float>;
template struct CrossEntropy<Bf16>;

} // namespace reckon::device::RECKON_ISA
