//===- Explain.h - why nothing fits, and what would -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_EXPLAIN_H
#define RECKON_PASSES_SEARCH_EXPLAIN_H

#include "passes/search/Evaluate.h"

namespace reckon::search {

/// Fills `result.infeasible` of a search that found nothing: the conflict, the
/// shortfall and the nearest changes.
void explainInfeasible(const Spec &spec, SearchResult &result);

/// Changes with which a spec that has no solution gets one, the nearest first:
/// fewest keys, then defaults before what the user wrote, then the machine.
std::vector<NearestChange> nearestChanges(const Spec &spec,
                                          const MaskTable &table);

/// `max_bubble`, `tensor_parallel`: the limit as a conflict names it, but for
/// the stage of the memory limit.
std::string limitName(Limit limit);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_EXPLAIN_H
