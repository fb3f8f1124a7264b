//===- TimeModel.cpp - predicted time of a step ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/TimeModel.h"

#include "passes/model/schedule/Given.h"
#include "passes/model/time/Priced.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

TimeModel::TimeModel(const Job &job) : TimeModel(job, efficiencyTable()) {}

TimeModel::TimeModel(const Job &job, const std::vector<EfficiencyRow> &table)
    : state_(std::make_unique<State>(job, table)) {}

TimeModel::~TimeModel() = default;
TimeModel::TimeModel(TimeModel &&) noexcept = default;

TimeModel::TimeModel(const TimeModel &other)
    : TimeModel(other.state_->job, other.state_->table) {}

const Efficiency &TimeModel::efficiency() const { return state_->efficiency; }
const Job &TimeModel::job() const { return state_->job; }

const KnownUnits &TimeModel::State::units(const LayerKey &key) {
  if (last && key == lastKey)
    return *last;
  std::unique_ptr<KnownUnits> &entry = known[key];
  if (!entry)
    entry = std::make_unique<KnownUnits>(layers.units(key));
  lastKey = key;
  last = entry.get();
  return *last;
}

LayerKey TimeModel::State::key(const Choice &choice) const {
  LayerKey key;
  key.tp = choice.tp;
  key.cp = choice.cp;
  key.ep = job.model.isMoe() ? choice.ep : 1;
  key.etp = job.model.isMoe() ? choice.etp : 1;
  key.microBatch = choice.microBatch;
  key.sequenceParallel = choice.sequenceParallel && choice.tp > 1;
  key.pipeline = choice.pp > 1;
  key.method = choice.cp > 1 ? choice.contextMethod : ContextMethod::None;
  if (shardsEveryMicroBatch(job.representation, choice)) {
    bool fsdp = job.representation == Representation::TorchTitan;
    key.shardDp = choice.dp;
    key.gatherForward = choice.zero == 3 || fsdp;
    key.gatherBackward = choice.zero == 3;
  }
  return key;
}

const UnitTimes &TimeModel::units(const Choice &choice) const {
  return state_->units(state_->key(choice)).units;
}

StageLayers model::stageLayers(const ModelShape &model, int64_t first,
                               int64_t count, int64_t full) {
  StageLayers layers;
  layers.dense = count;
  if (model.isMoe())
    layers.dense = std::clamp<int64_t>(model.firstDense - first, 0, count);
  layers.expert = count - layers.dense;
  layers.denseFull = std::min(full, layers.dense);
  layers.expertFull = std::min(full - layers.denseFull, layers.expert);
  return layers;
}

namespace {

/// Layers of virtual stage `k`, also when no layout is given.
int64_t stageCount(const model::Choice &choice, const ModelShape &model,
                   int64_t k) {
  if (!choice.layout.empty())
    return choice.layout[static_cast<size_t>(k)];
  int64_t stages = choice.stages();
  return model.layers / stages + (k < model.layers % stages ? 1 : 0);
}

int64_t fullCount(const model::Choice &choice, int64_t k, int64_t count) {
  if (choice.recompute != Recompute::Full)
    return 0;
  if (choice.recomputeLayers.empty())
    return count;
  return std::min(count, choice.recomputeLayers[static_cast<size_t>(k)]);
}

/// Seconds of one stage; recomputation that is not full is the same for all.
RankLoad stageLoad(const KnownUnits &units, const StageLayers &n,
                   Recompute rest, bool first, bool last, int64_t mtp) {
  RankLoad load;
  auto add = [&](const UnitSeconds &unit, int64_t count, int64_t full,
                 Recompute mode) {
    if (count == 0)
      return;
    auto all = static_cast<double>(count);
    auto again = static_cast<double>(full);
    load.forward += all * unit.forward;
    load.backward +=
        again * unit.of(Recompute::Full) + (all - again) * unit.of(mode);
    load.weight += all * unit.weight;
  };
  add(units.dense, n.dense, n.denseFull, rest);
  add(units.expert, n.expert, n.expertFull, rest);
  if (first)
    add(units.embedding, 1, 0, Recompute::None);
  if (last) {
    add(units.head, 1, 0, Recompute::None);
    add(units.mtp, mtp, 0, rest);
  }
  return load;
}

Recompute restOf(const model::Choice &choice) {
  // Full with a list: the layers that it leaves out recompute nothing.
  return choice.recompute == Recompute::Selective ? Recompute::Selective
                                                  : Recompute::None;
}

} // namespace

StageTime TimeModel::stage(const Choice &choice, int64_t stage) const {
  const ModelShape &m = state_->job.model;
  int64_t first = 0;
  for (int64_t k = 0; k < stage; ++k)
    first += stageCount(choice, m, k);
  int64_t count = stageCount(choice, m, stage);
  return this->stage(choice, stage, first, count,
                     fullCount(choice, stage, count));
}

StageTime TimeModel::stage(const Choice &choice, int64_t stage, int64_t first,
                           int64_t count, int64_t full) const {
  const ModelShape &m = state_->job.model;
  RankLoad load = stageLoad(
      state_->units(state_->key(choice)), stageLayers(m, first, count, full),
      restOf(choice), stage == 0, stage == choice.stages() - 1, m.mtpLayers);
  return {load.forward, load.backward - load.weight, load.weight};
}

StepParts TimeModel::State::parts(const Choice &choice) const {
  StepParts parts;
  int64_t p = choice.pp;
  if (p == 1)
    return parts;
  const Links &links = layers.links();
  const ModelShape &m = job.model;
  auto t = static_cast<double>(choice.tp);
  bool within = job.withinDomain(1, choice.world());
  double tokens = static_cast<double>(choice.microBatch * m.sequence) /
                  static_cast<double>(choice.cp);
  double bytes =
      layers.kernels().width * tokens * static_cast<double>(m.hidden);
  if (efficiency.pipelineSplit > 0 || choice.sequenceParallel)
    bytes /= t;
  parts.message = efficiency.factor * links.message(within, bytes);
  // Those of a given order are simulated, and may all hide.
  if (!givenOf(choice))
    parts.messages =
        exposedMessages(standInShape(choice).kind, p, choice.v,
                        choice.numMicroBatches, efficiency.pipelineHidden);
  if (m.tied) {
    double table = static_cast<double>(m.vocab * m.hidden) / t;
    parts.tied = 2 * efficiency.factor * links.message(within, 4 * table);
  }
  return parts;
}

/// Whether makespanFormula() is only near: an interleaved order turns from
/// chunk to chunk, and what ranks wait for when these differ no formula says
/// exactly.
static bool unevenChunks(const ScheduleShape &shape,
                         std::span<const StageDurations> stages) {
  if (shape.kind != ScheduleKind::Interleaved || shape.v == 1)
    return false;
  auto work = [](const StageDurations &s) { return s.forward + s.backward; };
  double first = work(stages.front());
  return std::any_of(stages.begin(), stages.end(), [&](const auto &stage) {
    return std::abs(work(stage) - first) > 1e-9 * first;
  });
}

/// What every interleaved order takes: a rank works on all of its chunks after
/// the first micro-batch has come through the first chunks of the ranks before
/// it, and before the last one has gone back through them.
static double leastInterleaved(const ScheduleShape &shape,
                               std::span<const StageDurations> stages) {
  auto work = [&](int64_t chunk, int64_t rank) {
    const StageDurations &s =
        stages[static_cast<size_t>(chunk * shape.p + rank)];
    return s.forward + s.backward;
  };
  double longest = 0, before = 0;
  for (int64_t rank = 0; rank < shape.p; ++rank) {
    double all = 0;
    for (int64_t chunk = 0; chunk < shape.v; ++chunk)
      all += work(chunk, rank);
    longest = std::max(longest, static_cast<double>(shape.m) * all + before);
    before += work(0, rank);
  }
  return longest;
}

TimeModel::Priced TimeModel::price(const Choice &choice, Chunks chunks) const {
  State &s = *state_;
  const ModelShape &m = s.job.model;
  const Efficiency &e = s.efficiency;
  const KnownUnits &units = s.units(s.key(choice));
  int64_t p = choice.pp, stages = choice.stages();

  // What each rank does and holds.
  const LayerParameters &expertLayer = s.expertParameters;
  auto t = static_cast<double>(choice.tp);
  double denseLocal = localParameters(s.job, s.denseParameters, choice.tp),
         expertLocal = localParameters(s.job, expertLayer, choice.tp);
  double expertsLocal = static_cast<double>(expertLayer.experts) /
                        static_cast<double>(choice.ep * choice.etp);
  double table = static_cast<double>(m.embeddingParameters()) / t;
  double headTable = static_cast<double>(m.vocab * m.hidden) / t;

  const GivenSchedule *given = p > 1 ? givenOf(choice) : nullptr;
  s.stages.resize(static_cast<size_t>(stages));
  s.ranks.assign(static_cast<size_t>(p), {});
  s.parameters.assign(static_cast<size_t>(p), {});
  int64_t first = 0;
  Recompute rest = restOf(choice);
  for (int64_t k = 0; k < stages; ++k) {
    int64_t count = stageCount(choice, m, k);
    StageLayers n = stageLayers(m, first, count, fullCount(choice, k, count));
    first += count;
    bool last = k == stages - 1;
    auto rank = static_cast<size_t>(
        given ? given->orders.rankOfStage[static_cast<size_t>(k)]
              : rankOfStage(choice.schedule, p, choice.v, k));
    RankLoad load = stageLoad(units, n, rest, k == 0, last, m.mtpLayers);
    s.stages[static_cast<size_t>(k)] = {load.forward, load.backward,
                                        load.weight};
    s.ranks[rank].forward += load.forward;
    s.ranks[rank].backward += load.backward;
    s.ranks[rank].weight += load.weight;
    LocalParameters &held = s.parameters[rank];
    held.dense += static_cast<double>(n.dense) * denseLocal +
                  static_cast<double>(n.expert) * expertLocal;
    held.experts += static_cast<double>(n.expert) * expertsLocal;
    if (k == 0)
      held.dense += table;
    if (last) {
      if (!m.tied || stages > 1)
        held.dense += headTable;
      held.dense += static_cast<double>(m.finalNormParameters());
      auto extra = static_cast<double>(m.mtpLayers);
      held.dense += extra * (m.isMoe() ? expertLocal : denseLocal);
      held.experts += extra * expertsLocal;
    }
  }

  Priced result;
  for (size_t r = 0; r < s.ranks.size(); ++r) {
    if (s.ranks[r].total() > result.load.total()) {
      result.load = s.ranks[r];
      result.busiest = static_cast<int64_t>(r);
    }
    if (s.parameters[r].total() > result.parameters.total())
      result.parameters = s.parameters[r];
  }
  auto micro = static_cast<double>(choice.numMicroBatches);
  static_cast<StepParts &>(result) = s.parts(choice);
  const Links &links = s.layers.links();
  if (p > 1) {
    double work = micro * result.load.total();
    if (given) {
      const State::Simulated &steps = s.simulate(choice.given, result.message);
      result.bubble = steps.still - work;
      if (result.message > 0)
        result.messages = (steps.moving - steps.still) / result.message;
    } else {
      ScheduleShape shape = standInShape(choice);
      bool uneven =
          chunks != Chunks::ByFormula && unevenChunks(shape, s.stages);
      double makespan = !uneven ? makespanFormula(shape, s.stages)
                        : chunks == Chunks::Simulated
                            ? scheduleMakespan(shape, s.stages)
                            : leastInterleaved(shape, s.stages);
      result.bubble = makespan - work;
    }
  }
  // Ranks with the same key heads add up their gradients.
  if (m.keyWays(choice.tp) < choice.tp && !gathersKeys(s.job, choice.tp)) {
    int64_t ways = m.keyWays(choice.tp), most = 0;
    for (int64_t k = 0; k < stages; ++k)
      most = std::max(most, stageCount(choice, m, k));
    double elements = static_cast<double>(
        most * choice.v * m.hidden * (m.kvWidth() + m.valueWidth()) / ways);
    result.tied +=
        2 * e.factor * links.tensorPass({choice.tp / ways, 1}, 4 * elements);
  }
  result.data = dataTime(s.job, e, links, choice, result.parameters,
                         result.load.forward, result.load.backward);
  result.optimizer =
      optimizerTime(s.layers.kernels(), choice, result.parameters);

  double busy = micro * result.load.total() + result.bubble +
                result.messages * result.message + result.data.exposed +
                result.tied;
  result.other = e.stepOverhead + e.factor * e.hostMicroBatch * micro +
                 e.jitter * s.doublings * busy;
  result.step = busy + result.optimizer + result.other;
  return result;
}

const TimeModel::State::Simulated &
TimeModel::State::simulate(const std::shared_ptr<const GivenSchedule> &given,
                           double message) {
  // Choices that differ in what the stages do not see follow each other.
  Simulated &known = simulated;
  auto same = [](const StageDurations &a, const StageDurations &b) {
    return a.forward == b.forward && a.backward == b.backward &&
           a.weight == b.weight;
  };
  if (known.given == given && known.message == message &&
      std::equal(known.stages.begin(), known.stages.end(), stages.begin(),
                 stages.end(), same))
    return known;
  known = {given, stages, message};
  auto makespan = [&](double transfer) {
    Result<Timetable> table = simulateOrders(given->orders, stages, transfer,
                                             /*keepActions=*/false);
    RECKON_CHECK(table.ok());
    return table->makespan;
  };
  known.still = makespan(0);
  known.moving = message > 0 ? makespan(message) : known.still;
  return known;
}

double TimeModel::quickStep(const Choice &choice) const {
  return price(choice, Chunks::ByFormula).step;
}

double TimeModel::exactStep(const Choice &choice) const {
  return price(choice, Chunks::Simulated).step;
}

double TimeModel::leastStep(const Choice &choice) const {
  return price(choice, Chunks::AtLeast).step;
}

double TimeModel::quickOptimizer(const Choice &choice) const {
  return price(choice, Chunks::ByFormula).optimizer;
}

std::vector<std::string> TimeModel::warnings() const {
  const Efficiency &e = state_->efficiency;
  const Job &job = state_->job;
  std::vector<std::string> warnings;
  for (const auto &[name, value] : job.calibration)
    if (!isEfficiencyConstant(name))
      warnings.push_back("the calibration has \"" + name +
                         "\", which is no constant of the time model; it is "
                         "not used");
  // `reckon` stands for the global constants.
  if (!job.profile.empty() && job.profile != "reckon" && !e.known)
    warnings.push_back("no run of the efficiency_profile \"" + job.profile +
                       "\" was measured; times use the global constants");
  else if (e.known && !e.fitted)
    warnings.push_back("no run of " + e.family + " on " + job.device.name +
                       " in " + toString(job.precision) +
                       " was measured; times use its rules with the global "
                       "efficiency");
  return warnings;
}
