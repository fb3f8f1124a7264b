//===- Explain.h - why nothing fits, and what would -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_EXPLAIN_H
#define RECKON_PASSES_SEARCH_EXPLAIN_H

#include "passes/search/Evaluate.h"

#include <set>

namespace reckon::search {

/// Collects, while a search runs, what it needs to explain a failure.
class Rejections {
public:
  void addReason(const std::string &reason) { reasons_.insert(reason); }
  void add(const model::Choice &choice, const Verdict &verdict);

  /// The conflict and the closest choice; no nearest changes yet.
  Infeasible explain(Evaluator &evaluator) const;

private:
  struct Entry {
    model::Choice choice;
    Verdict verdict;
  };
  std::optional<Entry> leastMemory_;       ///< among all
  std::optional<Entry> leastMemoryBubble_; ///< among those under max_bubble
  std::optional<Entry> leastBubble_;       ///< among those that fit in memory
  std::set<std::string> reasons_;
};

/// Changes of one key with which a spec that failed with `failure` has a
/// solution, each tried by a search; the easiest first.
std::vector<NearestChange> nearestChanges(const Spec &spec,
                                          const SearchResult &failure);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_EXPLAIN_H
