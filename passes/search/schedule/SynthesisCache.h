//===- SynthesisCache.h - synthesized schedules on disk -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESISCACHE_H
#define RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESISCACHE_H

#include "passes/search/schedule/Synthesize.h"

#include <optional>

namespace reckon::search {

/// What costs time to find; the rest of a Synthesis follows from it.
struct KeptSchedule {
  StartTable table;
  int64_t bound = 0;
  std::string method;
  int64_t instance = 0;
  uint64_t steps = 0, checks = 0;
};

/// A file that does not answer this very query, or whose schedule the checker
/// refuses, is no result. The bound is taken at its word.
std::optional<KeptSchedule> loadSchedule(const UnitQuery &query,
                                         uint64_t budget,
                                         const std::string &folder);

/// Failures are ignored: the next run computes again. Very long steps are not
/// kept.
void storeSchedule(const UnitQuery &query, uint64_t budget,
                   const KeptSchedule &kept, const std::string &folder);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESISCACHE_H
