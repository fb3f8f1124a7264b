//===- Synthesize.h - schedules made by the solver ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESIZE_H
#define RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESIZE_H

#include "passes/search/schedule/Repeat.h"

#include <array>
#include <string>

namespace reckon::search {

enum class SynthesisGoal {
  Makespan, ///< from the first start to the last end of all ranks
  Span      ///< the longest from first start to last end of one rank
};

/// One chunk a rank. Backwards are split into I and W, which may lie apart.
struct SynthesisQuery {
  int64_t p = 1;
  int64_t m = 1;
  std::vector<model::StageDurations> durations; ///< a rank each
  double transfer = 0;
  /// A rank each, at least 1: stashes that it holds at once, from the start of
  /// F to the end of W.
  std::vector<int64_t> slots;
  SynthesisGoal goal = SynthesisGoal::Makespan;
  /// The longest pass takes so many units of time in the solver.
  int64_t units = 6;
  /// Solver steps, all checks together; the same on every machine.
  uint64_t budget = 100'000'000;
};

/// What a named schedule makes of the same query.
struct NamedResult {
  model::ScheduleKind kind;
  bool fits = false;   ///< within the slots
  int64_t value = 0;   ///< of the goal, in units
  double makespan = 0; ///< with the durations as given
};

struct Synthesis {
  model::PipelineOrders orders;
  /// All m micro-batches in units, as the checker accepted them.
  StartTable table;
  double unit = 1;    ///< length of a unit of time
  bool exact = false; ///< the durations are whole units
  int64_t value = 0;  ///< of the goal, in units
  int64_t bound = 0;  ///< no schedule has less, in units
  bool optimal() const { return value == bound; }
  /// "solver", "repeating block" or the name of the schedule that it could not
  /// improve on.
  std::string method;
  int64_t instance = 0; ///< micro-batches that the solver saw
  double makespan = 0;  ///< of the orders with the durations as given
  double bubble = 0;    ///< of the same
  std::vector<NamedResult> named;
  uint64_t steps = 0, checks = 0;
  bool fromCache = false;
};

/// The best schedule that the budget allows, never worse than a named one that
/// fits. `cacheFolder`: where results are kept between runs; empty for none.
Synthesis synthesize(const SynthesisQuery &query,
                     const std::string &cacheFolder = "");

/// `$RECKON_SCHEDULE_CACHE`, none if that is empty or `off`; else
/// `$XDG_CACHE_HOME/reckon/schedules` or `~/.cache/reckon/schedules`; empty if
/// neither variable is set.
std::string scheduleCacheFolder();

/// The question whether `value` units suffice, for the `z3` program.
std::string synthesisSmtLib(const SynthesisQuery &query, int64_t value);

/// "optimal: 27 units, 24 of them work" and a table of the named schedules.
std::string describe(const SynthesisQuery &query, const Synthesis &synthesis);

//===----------------------------------------------------------------------===//
// Parts, for tests
//===----------------------------------------------------------------------===//

/// A query in whole units.
struct UnitQuery {
  int64_t p = 1, m = 1;
  /// By rank: F, I, W.
  std::vector<std::array<int64_t, 3>> lengths;
  int64_t transfer = 0;
  std::vector<int64_t> slots;
  SynthesisGoal goal = SynthesisGoal::Makespan;
  double unit = 1;
  bool exact = false;

  int64_t work(int64_t rank) const {
    return m * (lengths[rank][0] + lengths[rank][1] + lengths[rank][2]);
  }
};

/// Durations rounded to the nearest unit, at least one where they are not 0.
UnitQuery inUnits(const SynthesisQuery &query);

/// What no schedule can do better than, by counting: work behind the first
/// input of a rank, and slots that are free again only after a round trip.
int64_t simpleBound(const UnitQuery &query);

/// A schedule by rules: input gradients first, then forwards while there are
/// slots, then weight gradients.
StartTable greedySchedule(const UnitQuery &query);

/// Of a schedule in units.
int64_t goalOf(const UnitQuery &query, const StartTable &table);

/// The checker's word on a schedule in units.
Status checkUnits(const UnitQuery &query, const StartTable &table);

/// What each rank runs, in order.
model::PipelineOrders ordersOf(const UnitQuery &query, const StartTable &table);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESIZE_H
