//===- Conflict.h - the smallest set of limits that reject everything -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_CONFLICT_H
#define RECKON_PASSES_SEARCH_CONFLICT_H

#include "passes/search/Cost.h"
#include "passes/search/Limits.h"

namespace reckon::search {

/// The smallest set that has a limit in common with each of `masks`, by trying
/// all sets in rising size. Of equally small ones the one with most of
/// `preferred`, then the one of the lowest limits. Each inclusion-minimal mask
/// is a set of limits whose lifting lets something fit, so what hits all of
/// them is what rejects everything.
LimitMask smallestHittingSet(const std::vector<LimitMask> &masks,
                             LimitMask preferred);

/// Solves again, combination by combination and without the table of masks:
/// whether something keeps all limits in `keep`, all others lifted.
bool somethingKeeps(const Spec &spec, CostModel &cost, LimitMask keep);

/// Whether the limits of `conflict` reject everything and no proper subset
/// does, asked of somethingKeeps() literal by literal.
bool conflictHolds(const Spec &spec, CostModel &cost, LimitMask conflict);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_CONFLICT_H
