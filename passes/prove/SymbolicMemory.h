//===- SymbolicMemory.h - an arena that holds terms -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_SYMBOLICMEMORY_H
#define RECKON_PASSES_PROVE_SYMBOLICMEMORY_H

#include "passes/prove/Terms.h"

#include <map>
#include <vector>

namespace reckon::prove {

/// Which term each byte of an arena comes from. Bytes that nothing wrote have
/// none. A write whose place differs between ranks lies over the constant
/// ranges that bound it, until these are written as a whole.
class SymbolicMemory {
public:
  explicit SymbolicMemory(TermTable &terms) : terms_(terms) {}

  void write(const Range &range, TermId term);
  /// Forgets what lies in [begin, end).
  void clear(int64_t begin, int64_t end);
  /// The value of a range; kNoTerm when some of its bytes were never written,
  /// or lie partly in a block that differs between ranks.
  TermId read(const Range &range);

private:
  /// Bytes of one term, from `offset` on.
  struct Piece {
    int64_t end = 0;
    TermId term = kNoTerm;
    int64_t offset = 0;
  };
  /// A rank's own block over the pieces below it.
  struct Block {
    Range range;
    TermId term;
  };

  void split(int64_t at);
  TermId readPieces(int64_t begin, int64_t end);

  TermTable &terms_;
  std::map<int64_t, Piece> pieces_;
  std::vector<Block> blocks_; ///< oldest first
  std::vector<TermId> parts_;
};

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_SYMBOLICMEMORY_H
