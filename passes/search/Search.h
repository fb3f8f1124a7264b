//===- Search.h - choosing how a job is spread ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Enumerates every combination of the values that the spec leaves open, best
// bound first, then assigns layers and recomputation to the stages of those
// that can win. The result says what was proved, and how.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SEARCH_H
#define RECKON_PASSES_SEARCH_SEARCH_H

#include "passes/model/Choice.h"
#include "passes/model/StageModel.h"
#include "passes/model/account/Risk.h"
#include "passes/model/time/StepTime.h"
#include "passes/search/Limits.h"
#include "passes/search/schedule/PlanSchedule.h"

#include <optional>
#include <string>
#include <vector>

namespace reckon::search {

/// A choice with everything that is predicted of it.
struct Candidate {
  model::Choice choice;
  std::vector<model::StageMemory> stages; ///< by pipeline rank
  int64_t peakStage = 0;                  ///< of the largest total
  double bubbleFraction = 0;
  uint64_t hostBytes = 0; ///< of a node
  /// What became of measured runs that were predicted to be as full; nothing
  /// where arenas are static, which fit or do not.
  std::optional<model::MemoryRisk> risk;
  model::StepTime time;
  /// Why `reckon compile` cannot lower it; empty when it can.
  std::string notRunnable;

  uint64_t peakBytes() const { return stages[peakStage].total(); }
  uint64_t peakArena() const { return stages[peakStage].arena(); }
};

/// Combinations that are not candidates, by the first three under one head
/// each; of the others how often a limit was broken, where one combination may
/// break several.
struct RejectedCounts {
  int64_t divisibility = 0;
  int64_t representation = 0;
  int64_t compilable = 0;
  /// Proved no better than the choices kept before all was asked of them.
  int64_t bound = 0;
  int64_t limits = 0; ///< combinations that break at least one of these:
  int64_t memory = 0;
  int64_t bubble = 0;
  int64_t hostMemory = 0;
};

/// One key of a spec with a value.
struct Setting {
  std::string key;   ///< dotted, such as constraints.max_bubble
  std::string value; ///< as YAML
  std::string step;  ///< what one step less of it is, such as `0.01 GiB`
};

/// A change of the spec with which something fits. Found by solving; with any
/// of its settings one step nearer to the spec nothing does.
struct NearestChange {
  std::vector<Setting> settings;
  Candidate candidate;
};

/// Why nothing fits.
struct Infeasible {
  /// The smallest set of limits that together reject everything:
  /// `memory_limit stage 0`, `max_bubble`, `tensor_parallel`; `divisibility`
  /// when nothing divides whatever is lifted.
  std::vector<std::string> conflict;
  std::vector<Limit> limits; ///< the same, in the same order
  /// Dropping any one of them lets something fit, keeping all does not: solved
  /// again without the table that they were found with.
  bool checked = false;
  /// Bytes missing on the named stage in the choice that misses fewest among
  /// those that keep the other limits (or among all, when none does).
  uint64_t shortfallBytes = 0;
  /// The smallest bubble of all that fit in memory, when some do.
  std::optional<double> leastBubble;
  /// The choice that shortfallBytes is about; empty when nothing divides.
  std::optional<Candidate> closest;
  /// Why nothing divides, one line a reason, when nothing does.
  std::vector<std::string> reasons;
  std::vector<NearestChange> nearest; ///< the nearest first
};

/// One thing that was proved, or how far it is from being proved.
struct Proved {
  std::string what;   ///< `outer`, `assignment`, `schedule`
  std::string method; ///< `enumeration`, `dynamic_program`, ...
  bool optimal = false;
  double bound = 0; ///< no solution of that space is below, in `unit`
  double gap = 0;   ///< value / bound - 1; 0 when optimal
  std::string unit; ///< `s`, `dollars`, `bytes`
  std::string text; ///< a sentence
};

struct Proof {
  /// The choice is the best of the whole space named in `space`.
  bool optimal = false;
  double gap = 0;
  double bound = 0; ///< in the objective's unit
  std::string space;
  std::vector<Proved> parts;

  /// `optimal in this space`, or `within x %, bound y`.
  std::string sentence() const;
};

/// A configuration that the user named, beside the choice.
struct Compared {
  std::string name; ///< as written
  std::optional<Candidate> candidate;
  std::string problem; ///< why there is none, or which limit it breaks
};

/// A candidate with other layers or recomputation on its stages.
struct Refined {
  Candidate candidate;
  std::string how; ///< `optimal assignment (dynamic program)`
};

struct SearchResult {
  /// The best ones, best first; empty when nothing fits.
  std::vector<Candidate> candidates;
  int64_t space = 0;       ///< combinations of the open values
  int64_t evaluated = 0;   ///< of those, the ones whose cost was computed
  int64_t feasible = 0;    ///< of those, the ones that keep all limits
  int64_t assignments = 0; ///< of layers, that were solved on top
  /// Assignments of layers and recomputation that the combinations which divide
  /// have together, 0 where the spec leaves none open.
  double assignmentSpace = 0;
  RejectedCounts rejected;
  /// Combinations that do not divide or that the representation lacks.
  std::vector<std::pair<std::string, int64_t>> reasons;
  Proof proof;
  /// Of the first candidate, when it has several pipeline ranks.
  std::optional<PlannedSchedule> schedule;
  /// Of writing SearchOptions::smtFolder.
  Status smtStatus;
  /// The best choice that `reckon compile` can lower, when the first
  /// candidate is not one and there is one.
  std::optional<Candidate> runnable;
  /// Where the spec fixes all but the layout: a faster assignment of layers and
  /// recomputation than the first candidate's, when there is one.
  std::optional<Refined> refined;
  std::vector<Compared> compared;
  std::optional<Infeasible> infeasible;
};

struct SearchOptions {
  int64_t top = 1;
  /// Candidates differ in a degree or the micro-batch.
  bool distinct = true;
  /// Stop at the bound (large spaces only).
  bool prune = true;
  /// Assign layers and recomputation beyond the even layout.
  bool refine = true;
  /// Look for the best compilable choice beside another one.
  bool runnable = true;
  /// Folder for the queries of the solver, in SMT-LIB; empty: none.
  std::string smtFolder;
};

/// The best choices by the spec's objective; equal ones by less memory (or
/// time), then by smaller degrees, so that the result is the same everywhere.
SearchResult search(const Spec &spec, const SearchOptions &options);
SearchResult search(const Spec &spec, int64_t top);

/// The same, and when nothing fits the nearest changes that would.
SearchResult searchAndExplain(const Spec &spec, const SearchOptions &options);
SearchResult searchAndExplain(const Spec &spec, int64_t top);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SEARCH_H
