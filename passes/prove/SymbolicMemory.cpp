//===- SymbolicMemory.cpp - an arena that holds terms ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/SymbolicMemory.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::prove;

/// Cuts the piece that contains `at` inside.
void SymbolicMemory::split(int64_t at) {
  auto it = pieces_.lower_bound(at);
  if (it == pieces_.begin())
    return;
  --it;
  if (it->second.end <= at)
    return;
  Piece rest = it->second;
  rest.offset += at - it->first;
  it->second.end = at;
  pieces_.emplace_hint(std::next(it), at, rest);
}

void SymbolicMemory::clear(int64_t begin, int64_t end) {
  split(begin);
  split(end);
  pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
  // A block that is hidden in part can no longer be read as what it was: the
  // bytes below it are cleared too, so that it cannot come through.
  std::erase_if(blocks_, [&](const Block &block) {
    if (block.range.end <= begin || end <= block.range.begin)
      return false;
    if (begin <= block.range.begin && block.range.end <= end)
      return true;
    split(block.range.begin);
    split(block.range.end);
    pieces_.erase(pieces_.lower_bound(block.range.begin),
                  pieces_.lower_bound(block.range.end));
    return true;
  });
}

void SymbolicMemory::write(const Range &range, TermId term) {
  if (!range.varies) {
    clear(range.begin, range.end);
    pieces_.insert_or_assign(range.begin, Piece{range.end, term, 0});
    return;
  }
  const CoordFunctions &functions = terms_.functions();
  std::erase_if(blocks_, [&](const Block &block) {
    return functions.covers(range.offset, range.bytes, block.range.offset,
                            block.range.bytes);
  });
  blocks_.push_back({range, term});
}

/// The value of [begin, end) without blocks.
TermId SymbolicMemory::readPieces(int64_t begin, int64_t end) {
  auto it = pieces_.upper_bound(begin);
  if (it == pieces_.begin())
    return kNoTerm;
  --it;
  parts_.clear();
  CoordFunctions &functions = terms_.functions();
  for (int64_t at = begin; at < end; ++it) {
    if (it == pieces_.end() || it->first > at || it->second.end <= at)
      return kNoTerm;
    int64_t stop = std::min(end, it->second.end);
    parts_.push_back(terms_.slice(
        it->second.term, functions.constant(it->second.offset + at - it->first),
        stop - at));
    at = stop;
  }
  return terms_.concat(parts_);
}

TermId SymbolicMemory::read(const Range &range) {
  CoordFunctions &functions = terms_.functions();
  FnId start =
      range.varies ? range.offset : FnId(0); // constants compare by bounds
  for (size_t i = blocks_.size(); i-- > 0;) {
    const Block &block = blocks_[i];
    if (block.range.end <= range.begin || range.end <= block.range.begin)
      continue;
    if (range.varies && block.range.offset == range.offset &&
        block.range.bytes == range.bytes)
      return block.term;
    if (!range.varies)
      start = functions.constant(range.begin);
    if (functions.overlap(start, range.bytes, block.range.offset,
                          block.range.bytes))
      return kNoTerm;
  }
  TermId whole = readPieces(range.begin, range.end);
  if (whole == kNoTerm || !range.varies)
    return whole;
  return terms_.slice(whole, functions.shifted(range.offset, -range.begin),
                      range.bytes);
}
