//===- KeyCache.h - remembers answers by a few integers -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A search asks for the same parts of an account millions of times; a tree of
// keys would take most of its time. Entries are only looked up, never listed,
// so their order cannot reach a result.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_KEYCACHE_H
#define RECKON_PASSES_MODEL_KEYCACHE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace reckon::model {

template <size_t N, typename Value> class KeyCache {
public:
  using Key = std::array<int64_t, N>;

  /// The value of `key`; `make()` makes it the first time. References stay
  /// valid.
  template <typename Make> Value &get(const Key &key, Make &&make) {
    if (slots_.empty())
      slots_.resize(64);
    size_t slot = find(key);
    if (slots_[slot])
      return entries_[slots_[slot] - 1].second;
    // `make` may use other caches, not this one.
    entries_.emplace_back(key, make());
    if (2 * entries_.size() > slots_.size())
      grow();
    else
      slots_[slot] = entries_.size();
    return entries_.back().second;
  }

private:
  static uint64_t hash(const Key &key) {
    uint64_t sum = 0x9e3779b97f4a7c15;
    for (int64_t part : key) {
      sum ^= static_cast<uint64_t>(part);
      sum *= 0xff51afd7ed558ccd;
      sum ^= sum >> 32;
    }
    return sum;
  }
  /// As ==, which calls memcmp.
  static bool same(const Key &a, const Key &b) {
    int64_t differ = 0;
    for (size_t i = 0; i < N; ++i)
      differ |= a[i] ^ b[i];
    return differ == 0;
  }
  size_t find(const Key &key) const {
    size_t mask = slots_.size() - 1, slot = hash(key) & mask;
    while (slots_[slot] && !same(entries_[slots_[slot] - 1].first, key))
      slot = (slot + 1) & mask;
    return slot;
  }
  void grow() {
    slots_.assign(2 * slots_.size(), 0);
    for (size_t i = 0; i < entries_.size(); ++i)
      slots_[find(entries_[i].first)] = i + 1;
  }

  std::deque<std::pair<Key, Value>> entries_;
  std::vector<size_t> slots_; ///< index + 1 of an entry, 0: free
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_KEYCACHE_H
