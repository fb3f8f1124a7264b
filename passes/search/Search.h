//===- Search.h - choosing how a job is spread ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Enumerates every combination of the values that the spec leaves open, so the
// best one found is the best there is under the cost model. Memory is exact.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SEARCH_H
#define RECKON_PASSES_SEARCH_SEARCH_H

#include "passes/model/Choice.h"
#include "passes/model/StageModel.h"
#include "passes/model/Time.h"

#include <optional>
#include <string>
#include <vector>

namespace reckon::search {

/// A choice with everything that is predicted of it.
struct Candidate {
  model::Choice choice;
  std::vector<model::StageMemory> stages;
  int64_t peakStage = 0; ///< of the largest total
  double bubbleFraction = 0;
  model::StepTime time;

  uint64_t peakBytes() const { return stages[peakStage].total(); }
  uint64_t peakArena() const { return stages[peakStage].arena(); }
};

/// How often a limit was broken; one combination may break several.
struct RejectedCounts {
  int64_t memory = 0;
  int64_t bubble = 0;
  int64_t divisibility = 0;
};

/// A change of the spec with which something fits.
struct NearestChange {
  std::string key;   ///< dotted, such as constraints.max_bubble
  std::string value; ///< as YAML
  Candidate candidate;
};

/// Why nothing fits.
struct Infeasible {
  /// Limits that together reject everything: `memory_limit stage 0`,
  /// `max_bubble`, `divisibility`.
  std::vector<std::string> conflict;
  /// Bytes missing on the named stage in the choice that misses fewest among
  /// those that keep the other limits (or among all, when none does).
  uint64_t shortfallBytes = 0;
  /// The smallest bubble of all that fit in memory, when some do.
  std::optional<double> leastBubble;
  /// The choice that shortfallBytes is about; empty when nothing divides.
  std::optional<Candidate> closest;
  /// Why nothing divides, one line a reason, when nothing does.
  std::vector<std::string> reasons;
  std::vector<NearestChange> nearest;
};

struct SearchResult {
  /// The best ones, best first; empty when nothing fits.
  std::vector<Candidate> candidates;
  int64_t space = 0;     ///< combinations of the open values
  int64_t evaluated = 0; ///< of those, the ones that divide
  int64_t feasible = 0;
  RejectedCounts rejected;
  std::optional<Infeasible> infeasible;
};

/// The best `top` choices by predicted step time; equal ones by less memory,
/// then by smaller degrees, so that the result is the same everywhere.
SearchResult search(const Spec &spec, int64_t top);

/// The same, and when nothing fits the nearest changes that would.
SearchResult searchAndExplain(const Spec &spec, int64_t top);

/// `layers` over `stages`, as evenly as possible. What is left goes to the
/// middle stages from the back, then the first, then the last: the first holds
/// most micro-batches, the last has the head. 7 over 4: 2, 2, 2, 1.
std::vector<int64_t> evenLayout(int64_t layers, int64_t stages);

/// Why `tp`, `pp` or the batch cannot be split that way; empty when they can.
std::string indivisible(const model::ModelDims &dims,
                        const model::Choice &choice, int64_t globalBatch);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SEARCH_H
