//===- Report.cpp - the parts of a step, explained ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Given.h"
#include "passes/model/time/ModelFlops.h"
#include "passes/model/time/Priced.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

namespace {

/// Sums over the units of one pipeline rank, one micro-batch.
struct RankSums {
  Work forward, backward, recompute;
  Exposure tensor, context, expert, shard;
  double host = 0;
  double passes = 0;     ///< hidden states that tensor ranks move
  double modelFlops = 0; ///< of this device

  void add(const LayerTime &unit, double count, Recompute mode) {
    auto i = static_cast<size_t>(mode);
    forward += count * unit.forward;
    backward += count * (unit.inputGrad + unit.weightGrad);
    recompute += count * unit.recompute[i];
    tensor += count * unit.tensorForward;
    tensor += count * unit.tensorBackward[i];
    passes += count * (unit.tensorPassesForward + unit.tensorPassesBackward[i]);
    context += count * unit.contextForward;
    context += count * unit.contextBackward;
    expert += count * unit.expertForward;
    expert += count * unit.expertBackward;
    shard += count * unit.shardForward;
    shard += count * unit.shardBackward[i];
    host += count * (unit.hostForward + unit.hostBackward[i]);
  }
};

} // namespace

StepTime TimeModel::step(const Choice &choice) const {
  const State &s = *state_;
  const Job &job = s.job;
  const ModelShape &m = job.model;
  Priced priced = price(choice, Chunks::Simulated);
  const UnitTimes &u = units(choice);
  int64_t stages = choice.stages();

  StepTime time;
  RankSums sums;
  double layerFlops = 0, hardwareExtra = 0;
  double tokens = static_cast<double>(choice.microBatch * m.sequence);
  double share = static_cast<double>(choice.tp * choice.cp);
  int64_t first = 0;
  for (int64_t k = 0; k < stages; ++k) {
    StageTime one = stage(choice, k);
    StageDurations durations;
    durations.forward = one.forward;
    durations.backward = one.backward();
    durations.weight = one.weightGrad;
    time.stages.push_back(durations);
    int64_t count = choice.layout.empty()
                        ? m.layers / stages + (k < m.layers % stages ? 1 : 0)
                        : choice.layout[static_cast<size_t>(k)];
    int64_t full = 0;
    if (choice.recompute == Recompute::Full)
      full =
          choice.recomputeLayers.empty()
              ? count
              : std::min(count, choice.recomputeLayers[static_cast<size_t>(k)]);
    StageLayers n = stageLayers(m, first, count, full);
    first += count;
    double moe = m.isMoe() ? layerForward(m, true) : 0;
    double dense = layerForward(m, false);
    layerFlops = static_cast<double>(n.dense) * dense +
                 static_cast<double>(n.expert) * moe;
    if (choice.recompute == Recompute::Selective) {
      double core = attentionForward(m);
      auto some = [&](double layer) {
        return s.efficiency.selectiveMatmul * (layer - core) +
               (s.efficiency.attentionKernel < 1 ? core : 0);
      };
      hardwareExtra += static_cast<double>(n.dense) * some(dense) +
                       static_cast<double>(n.expert) * some(moe);
    }
    double again = dense;
    if (skipsLastMatmul(job, false))
      again -= 2 * static_cast<double>(m.ffn) * static_cast<double>(m.hidden);
    hardwareExtra += static_cast<double>(n.denseFull) * again +
                     static_cast<double>(n.expertFull) * moe;
    if (rankOfStage(choice, k) != priced.busiest)
      continue;
    Recompute rest = choice.recompute == Recompute::Selective
                         ? Recompute::Selective
                         : Recompute::None;
    auto add = [&](const LayerTime &unit, int64_t all, int64_t again) {
      sums.add(unit, static_cast<double>(again), Recompute::Full);
      sums.add(unit, static_cast<double>(all - again), rest);
    };
    add(u.dense, n.dense, n.denseFull);
    add(u.expert, n.expert, n.expertFull);
    if (k == 0)
      sums.add(u.embedding, 1, Recompute::None);
    if (k == stages - 1) {
      sums.add(u.head, 1, Recompute::None);
      add(u.mtp, m.mtpLayers, 0);
      layerFlops += static_cast<double>(1 + m.mtpLayers) * headForward(m);
      double h = static_cast<double>(m.hidden);
      layerFlops += static_cast<double>(m.mtpLayers) *
                    ((m.isMoe() ? moe : dense) + 4 * h * h);
    }
    sums.modelFlops += 3 * layerFlops * tokens / share;
  }

  auto micro = static_cast<double>(choice.numMicroBatches);
  time.step = priced.step;
  time.bubble = priced.bubble;
  time.message = priced.message;
  time.optimizer = priced.optimizer;
  double exposedLayer = sums.tensor.exposed + sums.context.exposed +
                        sums.expert.exposed + sums.shard.exposed;
  double host = micro * sums.host;
  time.compute = micro * (priced.load.total() - exposedLayer - sums.host);
  double messages = priced.messages * priced.message;
  time.exposedCommunication =
      micro * exposedLayer + messages + priced.data.exposed + priced.tied;
  time.other = priced.other + host;
  time.pipeline = micro * priced.load.total() + priced.bubble + messages;
  time.update = priced.data.exposed + priced.tied + priced.optimizer;
  time.overhead = priced.other;

  auto link = [&](const Group &group) {
    return s.layers.links().within(group) ? "intra_node" : "inter_node";
  };
  auto hiddenBytes = [&](double widths) {
    return s.layers.kernels().width * tokens / static_cast<double>(choice.cp) *
           widths;
  };
  auto t = static_cast<double>(choice.tp);
  auto layersOfRank =
      static_cast<double>(m.layers) / static_cast<double>(choice.pp);
  if (choice.tp > 1)
    time.communication.push_back(
        {"tensor",
         choice.sequenceParallel ? "reduce_scatter, all_gather" : "all_reduce",
         link({choice.tp, 1}),
         micro * sums.passes * hiddenBytes(static_cast<double>(m.hidden)) *
             (t - 1) / t,
         micro * sums.tensor.total, micro * sums.tensor.exposed});
  if (choice.cp > 1) {
    auto c = static_cast<double>(choice.cp);
    time.communication.push_back(
        {"context", toString(choice.contextMethod),
         link({choice.cp, choice.tp}),
         micro * layersOfRank * 3 * (c - 1) *
             hiddenBytes(static_cast<double>(m.kvWidth() + m.valueWidth())) /
             static_cast<double>(m.keyWays(choice.tp)),
         micro * sums.context.total, micro * sums.context.exposed});
  }
  if (m.isMoe() && choice.ep * choice.etp > 1) {
    auto e = static_cast<double>(choice.ep);
    time.communication.push_back(
        {"expert", "all_to_all", link({choice.ep, choice.etp}),
         micro * layersOfRank * 4 * static_cast<double>(m.topK) *
             hiddenBytes(static_cast<double>(m.hidden)) / t * (e - 1) / e,
         micro * sums.expert.total, micro * sums.expert.exposed});
  }
  if (choice.pp > 1) {
    double sent = 2 * micro * static_cast<double>(choice.v);
    double bytes = hiddenBytes(static_cast<double>(m.hidden));
    if (s.efficiency.pipelineSplit > 0 || choice.sequenceParallel)
      bytes /= t;
    time.communication.push_back(
        {"pipeline", "send_recv",
         job.withinDomain(1, choice.world()) ? "intra_node" : "inter_node",
         sent * bytes, sent * priced.message, messages});
  }
  if (choice.dp * choice.cp > 1) {
    const char *where = link({choice.dp * choice.cp, choice.tp});
    double all = priced.data.reduce + priced.data.gather;
    auto exposed = [&](double part) {
      return all > 0 ? priced.data.exposed * part / all : 0;
    };
    if (sums.shard.total > 0)
      time.communication.push_back(
          {"data", "all_gather, reduce_scatter", where,
           micro * sums.shard.total *
               s.layers.links().bandwidth({choice.dp * choice.cp, choice.tp}),
           micro * sums.shard.total, micro * sums.shard.exposed});
    if (priced.data.reduce > 0)
      time.communication.push_back(
          {"data", choice.zero == 0 ? "all_reduce" : "reduce_scatter", where,
           priced.data.reduceBytes, priced.data.reduce,
           exposed(priced.data.reduce)});
    if (priced.data.gather > 0)
      time.communication.push_back({"data", "all_gather", where,
                                    priced.data.gatherBytes, priced.data.gather,
                                    exposed(priced.data.gather)});
  }

  double stepTokens = job.tokensPerStep();
  double flops = modelFlops(m, AttentionFlops::Causal).total();
  double square = modelFlops(m, AttentionFlops::Square).total();
  auto devices = static_cast<double>(job.devices());
  time.ideal = flops * stepTokens / (devices * job.peakFlops());
  time.tokensPerSecond = stepTokens / time.step;
  time.tokensPerSecondPerDevice = time.tokensPerSecond / devices;
  time.tflopsPerDevice = flops * time.tokensPerSecondPerDevice / 1e12;
  time.mfu = time.ideal / time.step;
  time.hfu = time.mfu * (flops + hardwareExtra) / flops;
  time.mfuSquare = time.mfu * square / flops;
  time.flopConvention = describe(AttentionFlops::Causal);

  double busiestIdeal = micro * sums.modelFlops / job.peakFlops();
  auto lose = [&](const char *item, double seconds) {
    double points = seconds / time.step;
    time.losses.push_back({item, 100 * points, seconds,
                           points * devices * job.pricePerGpuHour * 30 * 24});
  };
  lose("kernel_efficiency",
       micro * (sums.forward.kernel + sums.backward.kernel) - busiestIdeal);
  lose("memory_bound_operations",
       micro * (sums.forward.memory + sums.backward.memory) + time.optimizer);
  lose("tensor_communication",
       micro *
           (sums.tensor.exposed + sums.context.exposed + sums.expert.exposed));
  lose("pipeline_bubble", time.bubble);
  lose("data_and_pipeline_communication", priced.data.exposed + priced.tied +
                                              messages +
                                              micro * sums.shard.exposed);
  lose("recompute", micro * sums.recompute.total());
  lose("imbalance_and_host", busiestIdeal - time.ideal + time.other);

  time.efficiencyFamily = s.efficiency.family;
  time.efficiencyFactor = s.efficiency.factor;
  time.errorBand = s.efficiency.errorBand;
  time.warnings = warnings();
  return time;
}
