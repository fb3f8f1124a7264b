//===- Bound.cpp - times that no choice can beat --------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A search asks for the bound of every node of its space. A layer's work is the
// sum of two parts with few sizes each - its routed experts and the rest - so
// that both are priced once for many nodes and a bound only adds them up.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Given.h"
#include "passes/model/time/Priced.h"
#include "passes/model/time/Shape.h"

#include <algorithm>
#include <bit>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

/// Rounding of sums in another order must not lift a bound above a choice.
static constexpr double kRounding = 1 - 1e-9;

/// Without what waits for the host.
static PassSeconds passes(const LayerTime &time) {
  return {time.forwardSeconds() - time.hostForward,
          time.backwardSeconds(Recompute::None) - time.hostBackward[0]};
}

UnitParts LayerModel::parts(const LayerKey &key) const {
  const ModelShape &m = job_.model;
  UnitParts parts;
  if (!m.isMoe() || m.firstDense > 0)
    parts.dense = passes(layer(key, false, false));
  if (m.isMoe())
    parts.expert = passes(layer(key, true, false));
  parts.embedding = passes(embedding(key));
  LayerTime head = this->head(key);
  parts.head = passes(head);
  if (m.mtpLayers > 0)
    parts.mtp = passes(mtp(key, LayerTime(), head));
  return parts;
}

double LayerModel::tokens(const LayerKey &key) const {
  Shape s = shape(key);
  return s.tokens / s.t;
}

PassSeconds LayerModel::routedExperts(const LayerKey &key) const {
  LayerTime time;
  experts(time, key, shape(key));
  double local = static_cast<double>(job_.model.layerParameters(true).experts) /
                 static_cast<double>(key.ep * key.etp);
  time.weightGrad.memory += kernels_.traffic(e_.accumulateBytes * local);
  return passes(time);
}

const TimeModel::State::Ways &
TimeModel::State::ways(const PartialChoice &partial) {
  return knownWays.get({partial.tp, partial.cp, partial.microBatch}, [&] {
    LayerKey key;
    key.tp = partial.tp;
    key.cp = partial.cp;
    key.microBatch = partial.microBatch;
    Ways made;
    for (bool pipeline : {false, true})
      for (bool moe : {false, true}) {
        key.pipeline = pipeline;
        made.host[pipeline][moe] = layers.hostSeconds(key, moe);
      }
    for (bool sp : {false, true}) {
      if (sp && partial.tp == 1)
        break;
      key.sequenceParallel = sp;
      for (ContextMethod method :
           {ContextMethod::Ring, ContextMethod::AllGather,
            ContextMethod::AllToAll}) {
        key.method = partial.cp > 1 ? method : ContextMethod::None;
        made.ways.push_back({sp, key.method, layers.parts(key)});
        if (partial.cp == 1)
          break;
      }
    }
    return made;
  });
}

/// Work of all layers, the embedding and the head on one micro-batch, nothing
/// recomputed, nothing of data parallelism.
class TimeModel::State::Work {
public:
  Work(State &state, const PartialChoice &partial, const Ways &ways)
      : model_(state.job.model), factor_(state.efficiency.factor),
        host_(ways.host[partial.pp > 1]) {
    LayerKey key;
    key.tp = partial.tp;
    key.cp = partial.cp;
    key.microBatch = partial.microBatch;
    if (!model_.isMoe())
      return;
    key.ep = partial.ep;
    key.etp = partial.etp;
    auto tokens = std::bit_cast<int64_t>(state.layers.tokens(key));
    routed_ = state.knownExperts.get({tokens, key.ep, key.etp}, [&] {
      return state.layers.routedExperts(key);
    });
  }

  double of(const UnitParts &parts) const {
    int64_t dense = model_.isMoe() ? std::min(model_.firstDense, model_.layers)
                                   : model_.layers;
    double denseLayer = launched(parts.dense, false);
    double layer =
        model_.isMoe() ? launched(parts.expert + routed_, true) : denseLayer;
    return factor_ *
           (static_cast<double>(dense) * denseLayer +
            static_cast<double>(model_.layers - dense) * layer +
            static_cast<double>(model_.mtpLayers) *
                (layer + parts.mtp.total()) +
            launched(parts.embedding, false) + launched(parts.head, false));
  }

private:
  /// No pass is over before the host has launched it.
  double launched(const PassSeconds &part, bool moe) const {
    return std::max(part.forward, host_[moe] / 3) +
           std::max(part.backward, host_[moe] * 2 / 3);
  }

  const ModelShape &model_;
  double factor_;
  const double *host_; ///< without experts, with
  PassSeconds routed_;
};

double TimeModel::State::bound(double busy, double micro) const {
  const Efficiency &e = efficiency;
  return (busy * (1 + e.jitter * doublings) + e.stepOverhead +
          e.factor * e.hostMicroBatch * micro) *
         kRounding;
}

double TimeModel::lowerBound(const PartialChoice &partial) const {
  State &s = *state_;
  const State::Ways &ways = s.ways(partial);
  State::Work work(s, partial, ways);
  double least = INFINITY;
  for (const State::Way &way : ways.ways)
    least = std::min(least, work.of(way.parts));
  auto micro = static_cast<double>(
      s.job.globalBatch /
      std::max<int64_t>(1, partial.dp * partial.microBatch));
  // The busiest rank has at least the mean.
  return s.bound(micro * least / static_cast<double>(partial.pp), micro);
}

double TimeModel::wayBound(const Choice &choice) const {
  State &s = *state_;
  PartialChoice partial{choice.tp, choice.cp,  choice.pp,        choice.dp,
                        choice.ep, choice.etp, choice.microBatch};
  LayerKey key = s.key(choice);
  double work = INFINITY;
  const State::Ways &ways = s.ways(partial);
  for (const State::Way &way : ways.ways)
    if (way.sequenceParallel == key.sequenceParallel &&
        way.method == key.method)
      work = State::Work(s, partial, ways).of(way.parts);
  RECKON_CHECK(work < INFINITY);
  StepParts parts = s.parts(choice);
  double busy = leastMakespan(shapeOf(choice), work) +
                parts.messages * parts.message + parts.tied;
  return s.bound(busy, static_cast<double>(choice.numMicroBatches));
}
