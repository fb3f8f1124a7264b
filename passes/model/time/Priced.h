//===- Priced.h - the parts of one choice's step --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_PRICED_H
#define RECKON_PASSES_MODEL_TIME_PRICED_H

#include "passes/model/KeyCache.h"
#include "passes/model/time/TimeModel.h"

#include <algorithm>
#include <cmath>

namespace reckon::model {

/// Seconds that one pipeline rank spends on one micro-batch, all its chunks.
struct RankLoad {
  double forward = 0;
  double backward = 0; ///< input and weight gradients, recomputation
  double weight = 0;   ///< part of it that zero-bubble schedules delay
  double total() const { return forward + backward; }
};

/// What a step has once, whatever its layers' places.
struct StepParts {
  double message = 0;  ///< seconds of one pipeline message
  double messages = 0; ///< that lengthen the step
  /// Sums of gradients of what several ranks of a replica hold: the embedding
  /// on both end stages, copied key heads.
  double tied = 0;
};

/// What quickStep() adds up and step() explains: one computation for both.
struct TimeModel::Priced : StepParts {
  double step = 0;
  int64_t busiest = 0;        ///< pipeline rank
  RankLoad load;              ///< of the busiest rank
  LocalParameters parameters; ///< of the rank with most
  double bubble = 0;
  DataTime data;
  double optimizer = 0;
  double other = 0;
};

struct LayerKeyHash {
  size_t operator()(const LayerKey &k) const {
    uint64_t h = 0xcbf29ce484222325u;
    for (uint64_t field :
         {uint64_t(k.tp), uint64_t(k.cp), uint64_t(k.ep), uint64_t(k.etp),
          uint64_t(k.microBatch), uint64_t(k.shardDp),
          uint64_t(k.method) * 16 + k.pipeline * 8 + k.sequenceParallel * 4 +
              k.gatherForward * 2 + k.gatherBackward})
      h = (h ^ field) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 32);
  }
};

/// LayerTime's sums, kept because a search asks for them millions of times.
struct UnitSeconds {
  UnitSeconds() = default;
  explicit UnitSeconds(const LayerTime &unit)
      : forward(unit.forwardSeconds()),
        backward{unit.backwardSeconds(Recompute::None),
                 unit.backwardSeconds(Recompute::Selective),
                 unit.backwardSeconds(Recompute::Full)},
        weight(unit.weightSeconds()) {}
  double of(Recompute mode) const {
    return backward[static_cast<size_t>(mode)];
  }
  double forward = 0;
  std::array<double, 3> backward{};
  double weight = 0;
};

/// One LayerKey, priced.
struct KnownUnits {
  explicit KnownUnits(UnitTimes theUnits)
      : units(theUnits), dense(units.dense), expert(units.expert),
        embedding(units.embedding), head(units.head), mtp(units.mtp) {}
  UnitTimes units;
  UnitSeconds dense, expert, embedding, head, mtp;
};

struct TimeModel::State {
  State(const Job &theJob, const std::vector<EfficiencyRow> &theTable)
      : job(theJob), table(theTable), efficiency(efficiencyFor(job, table)),
        layers(job, efficiency),
        denseParameters(job.model.layerParameters(false)) {
    // Reckon's runtime sends what a rank holds.
    if (job.representation == Representation::Reckon)
      efficiency.pipelineSplit = 0;
    if (job.model.isMoe())
      expertParameters = job.model.layerParameters(true);
    doublings =
        std::max(0.0, std::log2(static_cast<double>(job.devices()) / 8.0));
  }

  const KnownUnits &units(const LayerKey &key);
  LayerKey key(const Choice &choice) const;
  StepParts parts(const Choice &choice) const;

  // Bound.cpp.
  class Work;
  /// The units under one way of sequence and context parallelism.
  struct Way {
    bool sequenceParallel;
    ContextMethod method;
    UnitParts parts;
  };
  struct Ways {
    std::vector<Way> ways;
    double host[2][2]; ///< LayerModel::hostSeconds() by pipeline and experts
  };
  const Ways &ways(const PartialChoice &partial);
  /// Of a step that is busy so long.
  double bound(double busy, double micro) const;

  Job job;
  std::vector<EfficiencyRow> table;
  Efficiency efficiency;
  LayerModel layers;
  // Never iterated: results do not depend on the order of entries.
  std::unordered_map<LayerKey, std::unique_ptr<KnownUnits>, LayerKeyHash> known;
  LayerKey lastKey;
  const KnownUnits *last = nullptr;
  LayerParameters denseParameters, expertParameters;
  double doublings = 0;                  ///< of the devices beyond 8
  KeyCache<3, Ways> knownWays;           ///< by tp, cp and micro-batch
  KeyCache<3, PassSeconds> knownExperts; ///< by a rank's tokens, ep and etp
  // Scratch of price().
  std::vector<StageDurations> stages;
  std::vector<RankLoad> ranks;

  /// A step of a given schedule, simulated.
  struct Simulated {
    std::shared_ptr<const GivenSchedule> given{};
    std::vector<StageDurations> stages{};
    double message = 0;
    double still = 0;  ///< makespan when messages take no time
    double moving = 0; ///< when each takes `message`
  };
  /// Of the durations in `stages`; the last one is remembered.
  const Simulated &simulate(const std::shared_ptr<const GivenSchedule> &given,
                            double message);
  Simulated simulated;
  std::vector<LocalParameters> parameters;
};

/// Layers of one virtual stage by kind, and how many of them are recomputed.
struct StageLayers {
  int64_t dense = 0, expert = 0;
  int64_t denseFull = 0, expertFull = 0; ///< fully recomputed
};

/// Layers [first, first + count) of the model, the first `full` of them
/// recomputed.
StageLayers stageLayers(const ModelShape &model, int64_t first, int64_t count,
                        int64_t full);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_PRICED_H
