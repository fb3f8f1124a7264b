//===- IntervalPacker.cpp - first fit in program order --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/IntervalPacker.h"

#include "passes/model/Layout.h"

#include <algorithm>
#include <map>
#include <numeric>

using namespace reckon::model;

namespace {

/// A buffer that is allocated at the moment.
struct Block {
  uint64_t bytes;
  int end;
};

} // namespace

Packing reckon::model::packFirstFit(std::span<const Interval> intervals) {
  std::vector<size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return intervals[a].begin < intervals[b].begin;
  });

  Packing packing;
  packing.offsets.assign(intervals.size(), 0);
  std::map<uint64_t, Block> living; // by offset
  uint64_t liveBytes = 0;
  for (size_t index : order) {
    const Interval &interval = intervals[index];
    std::erase_if(living, [&](const auto &entry) {
      if (entry.second.end >= interval.begin)
        return false;
      liveBytes -= entry.second.bytes;
      return true;
    });
    uint64_t bytes = alignUp(interval.bytes);
    if (bytes == 0)
      continue;
    uint64_t offset = 0;
    for (const auto &[start, block] : living) {
      if (start >= offset + bytes)
        break;
      offset = start + block.bytes;
    }
    living.emplace(offset, Block{bytes, interval.end});
    liveBytes += bytes;
    packing.offsets[index] = offset;
    packing.total = std::max(packing.total, offset + bytes);
    packing.lowerBound = std::max(packing.lowerBound, liveBytes);
  }
  return packing;
}
