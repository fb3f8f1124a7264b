//===- AssignmentBound.cpp - a step before its layers are assigned --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Priced.h"

#include "passes/model/LayerWindow.h"
#include "passes/model/Schedule.h"

#include <algorithm>
#include <array>

using namespace reckon;
using namespace reckon::model;

namespace {

/// Everything that a micro-batch meets on its way.
struct Total {
  double forward = 0, input = 0, weight = 0;
  double work() const { return forward + input + weight; }
  void add(const UnitSeconds &unit, int64_t count, Recompute mode) {
    if (count == 0)
      return;
    auto n = static_cast<double>(count);
    forward += n * unit.forward;
    input += n * (unit.of(mode) - unit.weight);
    weight += n * unit.weight;
  }
  double piece(ScheduleKind kind) const {
    return rampPiece(kind, forward, input, weight);
  }
};

/// What the rank with most parameters holds at least, in two versions: the cost
/// of reducing them is least for one of both. The rank has some layers of the
/// larger kind and either nothing else or everything else that there is, of
/// which each parameter stands for one of such layers.
std::array<LocalParameters, 2> leastHeld(const Job &job,
                                         const LayerParameters &denseLayer,
                                         const LayerParameters &expertLayer,
                                         const model::Choice &choice,
                                         int64_t layersHeld) {
  const ModelShape &m = job.model;
  auto t = static_cast<double>(choice.tp);
  auto p = static_cast<double>(choice.pp);
  auto local = [&](const LayerParameters &layer) {
    return LocalParameters{.dense = localParameters(job, layer, choice.tp),
                           .experts =
                               static_cast<double>(layer.experts) /
                               static_cast<double>(choice.ep * choice.etp)};
  };
  int64_t dense = m.isMoe() ? std::min(m.firstDense, m.layers) : m.layers;
  LocalParameters each = local(m.isMoe() ? expertLayer : denseLayer);
  LocalParameters other = local(denseLayer);
  int64_t most = m.isMoe() ? m.layers - dense : m.layers;
  auto tables = static_cast<double>(m.embeddingParameters());
  if (!m.tied)
    tables += static_cast<double>(m.vocab * m.hidden);
  double rest = tables / t;
  if (m.isMoe())
    rest += static_cast<double>(dense) * other.total();
  if (m.isMoe() && other.total() > each.total()) // no such order of sizes
    return {};
  double mean = (static_cast<double>(most) * each.total() + rest) / p;
  auto share = static_cast<double>(
      std::max(layersHeld, (most + choice.pp - 1) / choice.pp));
  double held = std::max(mean, share * each.total());
  auto layers = [&](double parameters) {
    double n = std::max(0.0, parameters) / each.total();
    return LocalParameters{n * each.dense, n * each.experts};
  };
  LocalParameters with = layers(held - rest);
  with.dense += std::min(rest, held);
  return {layers(held), with};
}

} // namespace

AssignmentCost TimeModel::assignmentCost(const Choice &choice,
                                         double mostForward,
                                         double mostBackward,
                                         int64_t held) const {
  State &s = *state_;
  const Efficiency &e = s.efficiency;
  StepParts parts = s.parts(choice);
  double least = std::numeric_limits<double>::infinity();
  for (const LocalParameters &each :
       leastHeld(s.job, s.denseParameters, s.expertParameters, choice, held)) {
    double exposed = dataTime(s.job, e, s.layers.links(), choice, each,
                              mostForward, mostBackward)
                         .exposed;
    double busy = parts.messages * parts.message + exposed + parts.tied;
    least =
        std::min(least, (1 + e.jitter * s.doublings) * busy +
                            optimizerTime(s.layers.kernels(), choice, each));
  }
  auto micro = static_cast<double>(choice.numMicroBatches);
  double host = e.factor * e.hostMicroBatch * micro;
  return {.scale = 1 + e.jitter * s.doublings,
          .fixed = least + e.stepOverhead + host};
}

PassShares TimeModel::passShares(const Choice &choice) const {
  const KnownUnits &units = state_->units(state_->key(choice));
  PassShares shares{0, 0};
  for (const UnitSeconds *unit :
       {&units.dense, &units.expert, &units.mtp, &units.embedding, &units.head})
    for (Recompute mode :
         {Recompute::None, Recompute::Selective, Recompute::Full}) {
      double work = unit->forward + unit->of(mode);
      if (work <= 0)
        continue;
      shares.forward = std::max(shares.forward, unit->forward / work);
      shares.backward = std::max(shares.backward, unit->of(mode) / work);
    }
  return shares;
}

double TimeModel::assignmentBound(const Choice &choice) const {
  State &s = *state_;
  const ModelShape &m = s.job.model;
  const KnownUnits &units = s.units(s.key(choice));
  int64_t dense = m.isMoe() ? std::min(m.firstDense, m.layers) : m.layers;
  auto everything = [&](Recompute mode) {
    Total total;
    total.add(units.dense, dense, mode);
    total.add(units.expert, m.layers - dense, mode);
    total.add(units.mtp, m.mtpLayers, mode);
    total.add(units.embedding, 1, Recompute::None);
    total.add(units.head, 1, Recompute::None);
    return total;
  };
  Recompute rest = choice.recompute == Recompute::Selective
                       ? Recompute::Selective
                       : Recompute::None;
  Total total = everything(rest);
  double layer = std::numeric_limits<double>::infinity(); // the cheapest
  for (auto [unit, count] : {std::pair(&units.dense, dense),
                             std::pair(&units.expert, m.layers - dense)})
    if (count > 0)
      layer = std::min(layer, unit->forward + unit->of(rest));

  auto p = static_cast<double>(choice.pp);
  auto micro = static_cast<double>(choice.numMicroBatches);
  double work = total.work(), even = work / p;
  auto share = static_cast<double>((m.layers + choice.pp - 1) / choice.pp);
  // Some rank has at least the mean, and an even share of whole layers.
  double most = std::max(even, share * layer);
  double pipeline = micro * most;
  switch (choice.pp == 1 ? ScheduleKind::Csv : choice.schedule) {
  case ScheduleKind::GPipe:
    pipeline = (micro - 1) * most + work;
    break;
  case ScheduleKind::OneFOneB:
    // The paths through all ranks, weighted so that every stage counts alike,
    // which takes weights that are not negative.
    if (choice.numMicroBatches > choice.pp)
      pipeline = std::max(pipeline, (micro + p - 1) * even);
    break;
  case ScheduleKind::Interleaved:
  case ScheduleKind::Bfs: {
    // No stage has fewer layers than the window.
    LayerWindow window = layerWindow(m.layers, choice);
    double inner = static_cast<double>(window.least) * layer;
    double ends = static_cast<double>(window.least - window.leastEnd) * layer;
    if (choice.schedule == ScheduleKind::Bfs) {
      // Before and after the rank that works longest, p - 1 stages of others.
      pipeline += std::max(0.0, (p - 1) * inner - 2 * ends);
    } else {
      // Rank r waits for the first chunks of r ranks; the mean over all ranks.
      pipeline =
          std::max(pipeline, micro * even +
                                 std::max(0.0, (p - 1) / 2 * inner - 2 * ends));
    }
    break;
  }
  case ScheduleKind::ZbH1:
  case ScheduleKind::ZbH2:
  case ScheduleKind::ZbV:
  case ScheduleKind::DualPipeV: {
    // Of all ranks' pieces the largest does not count; it is at most the same
    // share of its rank's work as that of some unit.
    double share = 0;
    for (auto [unit, count] : {std::pair(&units.dense, dense),
                               std::pair(&units.expert, m.layers - dense),
                               std::pair(&units.mtp, m.mtpLayers),
                               std::pair(&units.embedding, int64_t{1}),
                               std::pair(&units.head, int64_t{1})})
      for (Recompute mode : {rest, Recompute::Full}) {
        Total one;
        one.add(*unit, count, mode);
        if (one.work() > 0)
          share = std::max(share, one.piece(choice.schedule) / one.work());
      }
    pipeline += std::max(0.0, total.piece(choice.schedule) - share * most);
    break;
  }
  default:
    break;
  }
  // A rank that works longer hides more, but by less than it takes, unless a
  // calibration says otherwise.
  PassShares shares = passShares(choice);
  const Efficiency &e = s.efficiency;
  double hidden =
      std::max({e.dataBackward, e.dataForward, 0.8 * std::min(micro, p)}) *
      (shares.forward + shares.backward);
  double busiest = hidden <= micro ? pipeline / micro
                                   : std::numeric_limits<double>::infinity();
  AssignmentCost cost = assignmentCost(choice, shares.forward * busiest,
                                       shares.backward * busiest);
  // Sums in another order must not lift the bound above a choice.
  return (cost.scale * pipeline + cost.fixed) * (1 - 1e-9);
}
