//===- Choice.h - one point of the space that the planner searches --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_CHOICE_H
#define RECKON_PASSES_MODEL_CHOICE_H

#include "frontends/spec/Spec.h"

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

namespace reckon::model {

using ScheduleKind = ::reckon::PipelineSchedule;
using ::reckon::ContextMethod;
using ::reckon::Precision;
using ::reckon::Recompute;

struct GivenSchedule;

/// Everything that is decided about how a model is spread and run: the
/// planner's result and the compiler's input. Not to be confused with the
/// spec's `reckon::Choice<T>`, which is what one key of the YAML leaves open.
struct Choice {
  int64_t tp = 1;                                    ///< tensor parallel
  bool sequenceParallel = false;                     ///< only with tp > 1
  int64_t cp = 1;                                    ///< context parallel
  ContextMethod contextMethod = ContextMethod::None; ///< only with cp > 1
  int64_t pp = 1;                                    ///< pipeline ranks
  int64_t v = 1;  ///< chunks per pipeline rank
  int64_t dp = 1; ///< data parallel, the experts' ranks included
  /// Expert parallel: groups inside the tp * cp * dp ranks of a pipeline rank,
  /// so it does not multiply the world.
  int64_t ep = 1;
  int64_t etp = 1; ///< expert tensor parallel
  int64_t zero = 0;
  int64_t microBatch = 1;      ///< sequences in a micro-batch of one replica
  int64_t numMicroBatches = 1; ///< micro-batches a step
  Recompute recompute = Recompute::None;
  /// Fully recomputed layers of each virtual stage when it is not all of them
  /// (Full) or none: recompute is then Full. Empty: as `recompute` says.
  std::vector<int64_t> recomputeLayers{};
  ScheduleKind schedule = ScheduleKind::OneFOneB;
  /// Decoder layers of each virtual stage, pp * v entries in the order of the
  /// forward; chunk c of rank i is entry c * pp + i, but for the V-shaped
  /// schedules, see rankOfStage().
  std::vector<int64_t> layout{};
  Precision precision = Precision::Bf16;
  /// Of `csv` and `synthesized`: the order, see givenOf().
  std::shared_ptr<const GivenSchedule> given{};

  int64_t world() const { return tp * cp * dp * pp; }
  /// Ranks that hold the same expert.
  int64_t edp() const { return tp * cp * dp / (ep * etp); }
  int64_t stages() const { return pp * v; }
  int64_t layers() const {
    return std::accumulate(layout.begin(), layout.end(), int64_t{0});
  }
  bool operator==(const Choice &) const = default;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_CHOICE_H
