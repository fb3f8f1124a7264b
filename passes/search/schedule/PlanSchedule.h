//===- PlanSchedule.h - the schedule of a plan, proved --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_PLANSCHEDULE_H
#define RECKON_PASSES_SEARCH_SCHEDULE_PLANSCHEDULE_H

#include "passes/search/schedule/Certify.h"
#include "passes/search/schedule/Synthesize.h"

#include <nlohmann/json.hpp>

namespace reckon::search {

struct Proved;

/// What Z3 says of the schedule of a choice, and the schedule itself where no
/// formula gives it.
struct PlannedSchedule {
  CertifyQuery query;
  Certificate certificate;
  /// `pipeline_schedule: synthesized`.
  std::optional<SynthesisQuery> synthesisQuery;
  std::optional<Synthesis> synthesis;

  /// Orders of `synthesized` and `csv`.
  std::optional<model::PipelineOrders> orders;
};

/// Certifies a choice with several pipeline ranks, and synthesizes first if its
/// schedule asks for it.
///
/// Slots are those that the accounting charges: the in-flight peak of a named
/// schedule; min(m, p) on every rank for one that is synthesized here; those of
/// the file's own orders for `csv`. The bubble is the one that `max_bubble`
/// bounds: equal stages, F = I = W and no transfer. A synthesized schedule is
/// made for `durations` (a virtual stage each).
///
/// `csv`: the text and name of the schedule file. `cacheFolder` as for
/// synthesize().
PlannedSchedule planSchedule(const model::Choice &choice,
                             std::span<const model::StageDurations> durations,
                             double maxBubble,
                             const std::string &cacheFolder = "",
                             const std::string &csvFile = "");

/// The same for a schedule that was synthesized before. What is certified is
/// its order, or, where that suits equal stages worse, ZB-H1 in the same slots.
PlannedSchedule planSynthesized(const model::Choice &choice,
                                SynthesisQuery query, Synthesis synthesis,
                                double maxBubble);

/// For SearchResult::proof.
Proved provedSchedule(const PlannedSchedule &planned);

/// For the JSON report.
nlohmann::ordered_json scheduleJson(const PlannedSchedule &planned);

/// Writes `schedule.smt2`, and `synthesis-N.smt2` with the questions whether N
/// and N-1 units suffice, into `folder`.
Status dumpScheduleSmt(const PlannedSchedule &planned,
                       const std::string &folder);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_PLANSCHEDULE_H
