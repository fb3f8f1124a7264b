//===- Estimates.cpp - what the frameworks' own estimators say ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Estimates.h"

#include "passes/model/account/MemoryProfile.h"
#include "passes/model/account/States.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace reckon;
using namespace reckon::model;

/// Elements of one layer, as the estimator counts them: no biases, no router,
/// every expert on every rank.
static double layerElements(const ModelShape &m, bool moe) {
  double h = m.hidden, heads = m.heads, norm = m.layerNorm ? 2 : 1;
  double gate = m.gated ? 1.5 : 1.0;
  double attention = 0;
  if (m.isMla()) {
    double q = m.mla.qRank, kv = m.mla.kvRank;
    double query = heads * static_cast<double>(m.mla.nope + m.mla.rope);
    double keys = heads * static_cast<double>(m.mla.nope + m.mla.value);
    attention = q > 0 ? q * (h + query + norm) : h * query;
    attention += kv * (h + keys + norm) + h * static_cast<double>(m.mla.rope) +
                 static_cast<double>(m.contextWidth()) * h;
  } else {
    double groups = static_cast<double>(m.kvHeads) / heads;
    attention = 2 * h * static_cast<double>(m.qWidth()) * (1 + groups);
  }
  double width = static_cast<double>(m.ffn);
  if (moe)
    width = static_cast<double>((m.experts + m.sharedExperts) * m.expertFfn);
  return 2 * h * (width * gate + norm) + attention;
}

MegatronEstimate model::megatronEstimate(const Job &job,
                                         const model::Choice &choice) {
  const ModelShape &m = job.model;
  double h = m.hidden, layers = m.layers, t = choice.tp, p = choice.pp;
  double dense = m.isMoe()
                     ? static_cast<double>(std::min(m.firstDense, m.layers))
                     : layers;
  double block = dense * layerElements(m, false) +
                 (layers - dense) * (m.isMoe() ? layerElements(m, true) : 0) +
                 (m.layerNorm ? 2 : 1) * h;
  double mtp = static_cast<double>(m.mtpLayers) * layerElements(m, m.isMoe());
  double multiple = 128 * t;
  double vocabulary =
      static_cast<double>((m.vocab + 128 * choice.tp - 1) / (128 * choice.tp)) *
      multiple;
  double embedding = h * vocabulary;
  MegatronEstimate e;
  e.parameters = (block / p + mtp + embedding) / t;
  if (choice.pp == 1 && !m.tied)
    e.parameters += embedding / t;
  e.statesBytes = e.parameters *
                  (choice.zero ? 6 + 12 / static_cast<double>(choice.dp) : 18);

  double sb = static_cast<double>(m.sequence * choice.microBatch);
  e.activationBytes = sb * h * (18 + 4 * m.ffn / h) * layers;
  e.activationBytes += 8 * sb * p + sb * h * p;
  if (choice.v > 1)
    e.activationBytes *= 1 + (p - 1) / (p * choice.v);
  else if (choice.pp > 1)
    e.activationBytes *=
        std::min(1.0, static_cast<double>(choice.numMicroBatches) / p);
  else
    e.activationBytes += 4 * sb * h * (1 + vocabulary / h);
  e.activationBytes /= t;
  return e;
}

double model::deepspeedEstimate(const Job &job, const model::Choice &choice) {
  double n = static_cast<double>(job.model.parameters());
  double world = static_cast<double>(choice.world());
  if (choice.zero < 2)
    return 18 * n;
  if (choice.zero == 2)
    return 2 * n + 18 * n / world;
  // Its largest layer is the largest module: embedding, attention or MLP.
  LayerParameters layer = job.model.layerParameters(job.model.isMoe());
  int64_t largest = std::max({job.model.embeddingParameters(),
                              layer.attention + layer.attentionCopied,
                              layer.mlp, layer.experts + layer.shared});
  return 4 * static_cast<double>(largest) + 18 * n / world;
}

double StateTraffic::bytes() const {
  double sent = static_cast<double>(elements) *
                static_cast<double>(wireBytes * repetitions) *
                static_cast<double>(group - 1) / static_cast<double>(group);
  return std::strcmp(collective, "all_reduce") == 0 ? 2 * sent : sent;
}

std::vector<StateTraffic> model::stateTraffic(const Job &job,
                                              const model::Choice &choice,
                                              int64_t denseElements,
                                              int64_t expertElements) {
  int64_t zero = choice.zero, k = choice.numMicroBatches;
  int64_t weight = choice.precision == Precision::Fp32 ? 4 : 2;
  bool half = job.gradReduce == GradReduceDtype::Bf16 ||
              job.representation == Representation::DeepSpeed ||
              (job.representation == Representation::Megatron &&
               memoryProfile(job.profile, job.representation).gradient == 2);
  int64_t gradient = half ? weight : 4;
  int64_t reduces = zero >= 2 ? k : 1, gathers = zero >= 3 ? 2 * k : 1;
  if (job.representation == Representation::TorchTitan && zero >= 2) {
    gradient = 4;
    // Without resharding between the passes, one gather a micro-batch; in a
    // pipeline weights and gradients stay whole for the step.
    gathers = choice.pp > 1 ? 1 : zero >= 3 ? 2 * k : k;
    reduces = choice.pp > 1 ? 1 : k;
  }
  std::vector<StateTraffic> traffic;
  auto add = [&](int64_t elements, int64_t group) {
    if (!elements || group < 2)
      return;
    if (zero == 0) {
      traffic.push_back({"all_reduce", group, elements, gradient, 1});
      return;
    }
    traffic.push_back({"reduce_scatter", group, elements, gradient, reduces});
    traffic.push_back({"all_gather", group, elements, weight, gathers});
  };
  add(denseElements, denseShardsOf(choice));
  add(expertElements, choice.edp());
  return traffic;
}

std::string model::seriesFigure(const Job &job, const model::Choice &choice) {
  MemoryProfile p = memoryProfile(job.profile, job.representation);
  bool full = choice.precision == Precision::Fp32;
  double weight = full ? 4 : p.weight;
  double whole = full ? 4 : p.gradient;
  double optimizer = full ? 8 : p.optimizer + p.gradientShard;
  if (!full && job.gradReduce == GradReduceDtype::Bf16)
    whole = 2;
  auto text = [](double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", value);
    return std::string(buffer);
  };
  switch (choice.zero) {
  case 0:
    return text(weight + whole + optimizer);
  case 1:
    return text(weight) + " + " + text(whole) + " + " + text(optimizer) + "/d";
  case 2:
    if (job.representation == Representation::TorchTitan)
      return std::string(choice.pp > 1 ? "2 + 4 + " : "2 + ") +
             text(p.shardedWeight + p.shardedGradient + p.shardedOptimizer) +
             "/d";
    return text(weight) + " + " + text(whole + optimizer) + "/d";
  default:
    if (choice.pp > 1 && p.pipelineKeepsUnits > 0)
      return "2 + 4 + " +
             text(p.shardedWeight + p.shardedGradient + p.shardedOptimizer) +
             "/d";
    return text(full ? 16
                     : p.shardedWeight + p.shardedGradient +
                           p.shardedOptimizer) +
           "/d";
  }
}
