//===- Permutation.h - a seeded order without memory ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The order of samples must be computable for any position at any time, by
// any rank and after any restart, so it is a keyed permutation and not a
// shuffled list: a balanced Feistel network over the next even number of
// bits, walked until the value falls into the range.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DATA_PERMUTATION_H
#define RECKON_RUNTIME_DATA_PERMUTATION_H

#include <cstdint>

namespace reckon::data {

/// A bijection of [0, size) chosen by (seed, epoch).
class Permutation {
public:
  /// `size` is at least 1 and at most 2^62.
  Permutation(uint64_t size, uint64_t seed, uint64_t epoch);

  /// Where position `index` < size goes. Constant memory; about two Feistel
  /// passes on average, because the domain is less than four times the range.
  uint64_t operator()(uint64_t index) const;

private:
  uint64_t pass(uint64_t value) const;

  uint64_t size_;
  uint64_t key_;
  unsigned halfBits_;
};

} // namespace reckon::data

#endif // RECKON_RUNTIME_DATA_PERMUTATION_H
