//===- Synthesized.h - schedules made for what the search found -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SYNTHESIZED_H
#define RECKON_PASSES_SEARCH_SYNTHESIZED_H

#include "passes/search/Search.h"

namespace reckon::search {

class Evaluator;

/// Stashes that the memory of each pipeline rank holds beside its other bytes,
/// at least min(m, p), which the search has made sure of, and at most as many
/// as any schedule has use for.
std::vector<int64_t> slotsWithin(const model::Choice &choice,
                                 Evaluator &evaluator);

/// Gives the candidates with `pipeline_schedule: synthesized` their orders: the
/// solver's, for their own durations and messages and the slots that their
/// memory has, where they keep all limits; else those of ZB-H1, which the
/// search priced. Sorts the candidates again, and returns what is proved of the
/// schedule of the first.
PlannedSchedule synthesizeSchedules(const Spec &spec, SearchResult &result);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SYNTHESIZED_H
