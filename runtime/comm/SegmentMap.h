//===- SegmentMap.h - a list of segments seen as blocks of one array ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Collectives work on blocks, one a rank, and blocks on lists of tensors. This
// map finds the memory behind "element k of block b" for the three layouts:
//
//   Cut      block b is the b-th part of the concatenated segments; parts
//            differ by at most one element (all_reduce, messages)
//   Blocked  every segment holds n blocks; block b is the concatenation of the
//            b-th block of every segment (in of reduce_scatter, out of
//            all_gather)
//   Plain    the segments are one block (the other side of those two)
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_COMM_SEGMENTMAP_H
#define RECKON_RUNTIME_COMM_SEGMENTMAP_H

#include "runtime/comm/Communicator.h"

#include <algorithm>

namespace reckon::comm {

enum class Side : uint8_t { In = 0, Out };
enum class Layout : uint8_t { Cut, Blocked, Plain };

class SegmentMap {
public:
  void reserve(size_t segments) { entries_.reserve(segments); }
  size_t capacity() const { return entries_.capacity(); }

  /// Empties the map and sets the layout; add() follows.
  void reset(uint64_t blocks, size_t elementBytes, Layout in, Layout out) {
    entries_.clear();
    blocks_ = blocks;
    size_ = elementBytes;
    layout_[0] = in;
    layout_[1] = out;
    total_ = 0;
  }

  /// `count` elements: of the segment for Cut and Plain, of one of its blocks
  /// for Blocked.
  void add(const void *in, const void *out, uint64_t count) {
    if (count == 0)
      return;
    auto plain = [](const void *p) {
      return static_cast<char *>(const_cast<void *>(p));
    };
    entries_.push_back({{plain(in), plain(out)}, count, total_});
    total_ += count;
  }

  /// Sum of the counts that were added.
  uint64_t total() const { return total_; }
  size_t elementSize() const { return size_; }

  uint64_t blockLength(uint64_t block) const {
    if (!isCut())
      return total_;
    return total_ / blocks_ + (block < total_ % blocks_ ? 1 : 0);
  }
  uint64_t longestBlock() const { return blockLength(0); }

  /// Address of element `offset` of a block, and how many follow contiguously
  /// (itself included). `offset` must lie within the block.
  char *at(Side side, uint64_t block, uint64_t offset, uint64_t &run) const {
    Layout layout = layout_[static_cast<int>(side)];
    if (layout == Layout::Cut)
      offset += block * (total_ / blocks_) + std::min(block, total_ % blocks_);
    const Entry &entry =
        *(std::upper_bound(
              entries_.begin(), entries_.end(), offset,
              [](uint64_t o, const Entry &e) { return o < e.prefix; }) -
          1);
    uint64_t inside = offset - entry.prefix;
    run = entry.count - inside;
    if (layout == Layout::Blocked)
      inside += block * entry.count;
    return entry.data[static_cast<int>(side)] + inside * size_;
  }

private:
  struct Entry {
    char *data[2];
    uint64_t count;
    uint64_t prefix;
  };
  bool isCut() const { return layout_[0] == Layout::Cut; }

  std::vector<Entry> entries_;
  uint64_t blocks_ = 1;
  uint64_t total_ = 0;
  size_t size_ = 1;
  Layout layout_[2] = {Layout::Plain, Layout::Plain};
};

/// A range of bytes to send or to fill: plain memory, or a part of a block.
struct Region {
  char *plain = nullptr;
  const SegmentMap *map = nullptr;
  Side side = Side::In;
  uint64_t block = 0;
  uint64_t begin = 0; // first element within the block
  uint64_t bytes = 0;

  static Region memory(void *data, uint64_t bytes) {
    Region region;
    region.plain = static_cast<char *>(data);
    region.bytes = bytes;
    return region;
  }
  static Region part(const SegmentMap &map, Side side, uint64_t block,
                     uint64_t begin, uint64_t count) {
    Region region;
    region.map = &map;
    region.side = side;
    region.block = block;
    region.begin = begin;
    region.bytes = count * map.elementSize();
    return region;
  }

  /// Address of byte `offset`, and how many follow contiguously.
  char *at(uint64_t offset, uint64_t &run) const {
    if (!map) {
      run = bytes - offset;
      return plain + offset;
    }
    uint64_t size = map->elementSize();
    char *data = map->at(side, block, begin + offset / size, run);
    run = std::min(run * size - offset % size, bytes - offset);
    return data + offset % size;
  }
};

/// Calls f(a, b, n) for the pieces of equal position of two ranges of `count`
/// elements, a from one side of a map, b from plain memory of `bStride` bytes
/// an element.
template <typename F>
void forEachRun(const SegmentMap &map, Side side, uint64_t block,
                uint64_t begin, uint64_t count, char *plain, size_t stride,
                F &&f) {
  for (uint64_t done = 0; done < count;) {
    uint64_t run = 0;
    char *data = map.at(side, block, begin + done, run);
    run = std::min(run, count - done);
    f(data, plain + done * stride, static_cast<size_t>(run));
    done += run;
  }
}

} // namespace reckon::comm

#endif // RECKON_RUNTIME_COMM_SEGMENTMAP_H
