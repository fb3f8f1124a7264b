//===- Count.h - how many assignments a choice has ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_COUNT_H
#define RECKON_PASSES_SEARCH_ASSIGN_COUNT_H

#include <cstdint>

namespace reckon::search {

/// Layouts of `layers` on p ranks of v chunks within model::layerWindow(), the
/// chunks of a rank by spreadOver(), ends no lighter than the others. With
/// `recompute` each counts once for every number of recomputed layers of every
/// rank. A floating-point number, since there may be more than 2^64.
double countAssignments(int64_t layers, int64_t p, int64_t v, bool recompute);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_COUNT_H
