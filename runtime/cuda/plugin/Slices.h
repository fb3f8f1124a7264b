//===- Slices.h - attention in parts that fit their scratch ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_SLICES_H
#define RECKON_RUNTIME_CUDA_PLUGIN_SLICES_H

#include "runtime/cuda/Attention.h"

#include <algorithm>

namespace reckon::cuda {

/// What one execution of a graph covers of a call: whole sequences, and whole
/// groups of query heads with the key head that they share. Both divide the
/// call's; fewer than all heads only of single sequences.
struct AttentionSlice {
  int64_t batch = 0; ///< sequences
  int64_t hkv = 0;   ///< key and value heads
  bool operator==(const AttentionSlice &) const = default;
};

/// The largest divisor of `whole` that is at most `most`, and at least 1.
inline int64_t divisorUpTo(int64_t whole, int64_t most) {
  int64_t divisor = std::clamp<int64_t>(most, 1, whole);
  while (whole % divisor != 0)
    --divisor;
  return divisor;
}

/// The next slice to try when `slice` takes `bytes` of scratch and `limit` is
/// wanted, if scratch were in proportion: smaller than `slice`, or equal to it
/// if that fits or cannot be divided.
inline AttentionSlice smallerSlice(const AttentionShape &shape,
                                   const AttentionSlice &slice, int64_t bytes,
                                   int64_t limit) {
  const int64_t groups = slice.batch * slice.hkv;
  if (bytes <= limit || groups <= 1)
    return slice;
  const int64_t parts = (bytes + limit - 1) / limit;
  const int64_t most = std::min(groups - 1, groups / parts);
  if (most >= shape.hkv)
    return {divisorUpTo(shape.batch, most / shape.hkv), shape.hkv};
  return {1, divisorUpTo(shape.hkv, most)};
}

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGIN_SLICES_H
