//===- Search.cpp - choosing how a job is spread --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Search.h"

#include "passes/search/Explain.h"
#include "passes/search/Goodput.h"
#include "passes/search/Outer.h"
#include "passes/search/Synthesized.h"
#include "passes/search/assign/Refine.h"
#include "runtime/base/Activity.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

/// A bound that is so near is the optimum: it leaves rounding out.
static constexpr double kProved = 1e-6;

static void record(SearchResult &result, const Counts &counts) {
  result.space = counts.space;
  result.assignmentSpace = counts.assignments;
  result.evaluated = counts.limits + counts.feasible;
  result.feasible = counts.feasible;
  result.rejected = {.divisibility = counts.divisibility,
                     .representation = counts.representation,
                     .compilable = counts.compilable,
                     .bound = counts.bound,
                     .limits = counts.limits,
                     .memory = counts.memory,
                     .bubble = counts.bubble,
                     .hostMemory = counts.hostMemory};
  std::map<std::string, int64_t> reasons = counts.forbidden;
  for (const auto &[why, count] : counts.misfits)
    reasons[why.str()] += count;
  result.reasons.assign(reasons.begin(), reasons.end());
}

/// What the loop over all combinations proved.
static Proved enumerationProof(const Counts &counts,
                               const ObjectiveValue &best) {
  return {.what = "outer",
          .method = "enumeration",
          .optimal = true,
          .bound = best.value,
          .gap = 0,
          .unit = best.unit,
          .text = "all " + std::to_string(counts.space) +
                  " combinations were evaluated or excluded by a bound"};
}

/// Whether the spec fixes every degree, the chunks and the micro-batch: it
/// describes a run, which is evaluated with the layers where they would be.
static bool describesRun(const Spec &spec) {
  const ParallelismSpec &p = spec.parallelism;
  auto fixed = [](const auto &key) {
    return !key.isAuto && key.values.size() == 1;
  };
  bool experts = model::modelShape(spec).isMoe();
  bool chunks = fixed(p.virtualPipeline) ||
                (fixed(p.pipelineParallel) && p.pipelineParallel.allows(1));
  return fixed(p.tensorParallel) && fixed(p.contextParallel) &&
         fixed(p.pipelineParallel) && chunks && fixed(p.microBatchSize) &&
         (!experts || fixed(p.expertParallel));
}

/// What assigning layers and recomputation proved.
static Proved assignmentProof(const RefineResult &refined) {
  Proved proved{.what = "assignment",
                .method = "dynamic_program",
                .bound = refined.boundSeconds,
                .unit = "s"};
  double step = refined.best.front().seconds;
  proved.gap = std::max(0.0, step / refined.boundSeconds - 1);
  proved.optimal = proved.gap <= kProved;
  if (proved.optimal)
    proved.gap = 0;
  char text[200];
  std::snprintf(text, sizeof text,
                "layers and recomputation of %lld choices were assigned; no "
                "assignment has a step below %.6g s",
                static_cast<long long>(refined.solved), refined.boundSeconds);
  proved.text = text;
  return proved;
}

/// What Z3 proved of the best choice's chunks.
static Proved arrangementProof(const Arranged &arranged, double step) {
  Proved proved{.what = "arrangement",
                .method = "z3",
                .bound = arranged.bound,
                .gap = std::max(0.0, step / arranged.bound - 1),
                .unit = "s"};
  proved.optimal = proved.gap <= kProved;
  char text[200];
  if (proved.optimal) {
    proved.gap = 0;
    std::snprintf(text, sizeof text,
                  "no other arrangement of the choice's layers over its chunks "
                  "is faster");
  } else {
    std::snprintf(text, sizeof text,
                  "other arrangements of the choice's layers over its chunks "
                  "are not below %.6g s",
                  arranged.bound);
  }
  proved.text = text;
  if (arranged.gained > 0) {
    std::snprintf(text, sizeof text, "; %.3g %% were gained",
                  100 * arranged.gained / (step + arranged.gained));
    proved.text += text;
  }
  return proved;
}

/// Puts the best assignments in the place of `found`, or beside it where the
/// spec describes a run.
static void takeAssignments(const Spec &spec, Evaluator &evaluator,
                            const RefineResult &refined, OuterResult &found,
                            SearchResult &result) {
  result.assignments = refined.solved;
  if (refined.solved == 0)
    return; // orders that were made for even layouts
  const Ranked &best = refined.best.front();
  if (describesRun(spec)) {
    if (best.key() < found.best.front().key())
      result.refined = Refined{evaluator.candidate(best.choice),
                               "by assigning layers and recomputation"};
    return;
  }
  found.best = refined.best;
  Proved proved = assignmentProof(refined);
  Proof &proof = result.proof;
  proof.optimal = refined.gap <= kProved;
  proof.gap = proof.optimal ? 0 : refined.gap;
  proof.bound = objectiveValue(spec, evaluator.candidate(best.choice)).value /
                (1 + proof.gap);
  proof.space = "uneven layouts";
  if (assignFreedom(spec).recompute)
    proof.space += ", recomputation layer by layer";
  proof.parts.push_back(std::move(proved));
  if (refined.arranged)
    proof.parts.push_back(
        arrangementProof(*refined.arranged, found.best.front().seconds));
}

SearchResult search::search(const Spec &spec, const SearchOptions &options) {
  Evaluator evaluator(spec);
  Space space(spec);
  SearchResult result;
  OuterOptions outer{.top = options.top,
                     .distinct = options.distinct,
                     .prune = options.prune,
                     .objective = *spec.search.objective};
  Refinery refinery(spec, evaluator, space);
  bool refine = options.refine && options.distinct && refinery.active();
  outer.countAssignments = refine;
  if (refine)
    outer.opened = [&](const model::Choice &leaf, double below) {
      refinery.offer(leaf, below);
    };
  OuterResult found = searchOuter(space, evaluator, evaluator.bounds(), outer);
  record(result, found.counts);
  if (found.best.empty()) {
    result.infeasible = Infeasible{};
    return result;
  }
  result.proof.parts.push_back(enumerationProof(
      found.counts,
      objectiveValue(spec, evaluator.candidate(found.best.front().choice))));
  result.proof.optimal = true;
  result.proof.bound = result.proof.parts.front().bound;
  result.proof.space = "even layouts";
  if (refine)
    takeAssignments(spec, evaluator, refinery.run(found.best, options.top),
                    found, result);
  for (const Ranked &ranked : found.best)
    result.candidates.push_back(evaluator.candidate(ranked.choice));
  if (options.runnable && !result.candidates.front().notRunnable.empty() &&
      model::whyNotCompilable(evaluator.job().model).empty()) {
    Spec compilable = spec;
    compilable.search.space.value = SearchSpace::Compilable;
    SearchOptions one = options;
    one.top = 1;
    one.runnable = false;
    SearchResult other = search::search(compilable, one);
    if (!other.candidates.empty())
      result.runnable = other.candidates.front();
  }
  return result;
}

SearchResult search::search(const Spec &spec, int64_t top) {
  return search::search(spec, SearchOptions{.top = top});
}

/// Certifies the schedule of the first candidate.
static void proveSchedule(const Spec &spec, const SearchOptions &options,
                          SearchResult &result) {
  const Candidate &best = result.candidates.front();
  if (best.choice.pp == 1)
    return;
  Activity activity("schedule");
  double maxBubble = *spec.constraints.maxBubble;
  if (best.choice.schedule == PipelineSchedule::Synthesized)
    result.schedule = synthesizeSchedules(spec, result);
  else
    result.schedule = planSchedule(best.choice, {}, maxBubble);
  result.proof.parts.push_back(provedSchedule(*result.schedule));
  if (!options.smtFolder.empty())
    result.smtStatus = dumpScheduleSmt(*result.schedule, options.smtFolder);
}

SearchResult search::searchAndExplain(const Spec &spec,
                                      const SearchOptions &options) {
  SearchResult result = search::search(spec, options);
  if (result.infeasible) {
    explainInfeasible(spec, result);
  } else {
    proveSchedule(spec, options, result);
  }
  return result;
}

SearchResult search::searchAndExplain(const Spec &spec, int64_t top) {
  return searchAndExplain(spec, SearchOptions{.top = top});
}

std::string Proof::sentence() const {
  if (optimal)
    return "optimal in this space (" + space + ")";
  char text[160];
  std::string unit = parts.empty() ? "s" : parts.front().unit;
  std::snprintf(text, sizeof text,
                unit == "s" ? "within %.2g %%, bound %.6g %s"
                            : "within %.2g %%, bound %.0f %s",
                100 * gap, bound, unit.c_str());
  return std::string(text) + " (" + space + ")";
}
