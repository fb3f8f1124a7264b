//===- Permutation.cpp - a seeded order without memory --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/Permutation.h"

namespace reckon::data {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014): a bijective mixer.
static uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

Permutation::Permutation(uint64_t size, uint64_t seed, uint64_t epoch)
    : size_(size), key_(mix(mix(seed) ^ epoch)), halfBits_(1) {
  while ((uint64_t(1) << (2 * halfBits_)) < size)
    ++halfBits_;
}

uint64_t Permutation::pass(uint64_t value) const {
  // Six rounds: four make a pseudo-random permutation (Luby and Rackoff), two
  // more because small domains have few bits a round.
  constexpr unsigned kRounds = 6;
  uint64_t mask = (uint64_t(1) << halfBits_) - 1;
  uint64_t left = value >> halfBits_;
  uint64_t right = value & mask;
  for (unsigned round = 0; round < kRounds; ++round) {
    uint64_t next = left ^ (mix(key_ ^ mix(right * 8 + round)) & mask);
    left = right;
    right = next;
  }
  return (left << halfBits_) | right;
}

uint64_t Permutation::operator()(uint64_t index) const {
  uint64_t value = index;
  do
    value = pass(value);
  while (value >= size_);
  return value;
}

} // namespace reckon::data
