//===- States.cpp - parameters, gradients and optimizer of a rank ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/States.h"

#include "passes/model/Layout.h"
#include "passes/model/StageModel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace reckon;
using namespace reckon::model;

static int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

static uint64_t bytesOf(double perElement, int64_t elements) {
  return static_cast<uint64_t>(
      std::llround(perElement * static_cast<double>(elements)));
}

StateTable::StateTable(const Job &job, const MemoryProfile &profile,
                       const TensorTable &tensors, const model::Choice &choice)
    : model_(job.model), profile_(profile), representation_(job.representation),
      precision_(choice.precision),
      unitRelease_(isUnitRelease(profile, job, choice)),
      reduceBf16_(job.gradReduce == GradReduceDtype::Bf16), zero_(choice.zero),
      pp_(choice.pp), shards_(denseShardsOf(choice)),
      expertShards_(std::max<int64_t>(1, choice.edp())), tensors_(tensors) {}

const StateBytes &StateTable::rank(const RankParts &parts) {
  // A choice has few kinds of ranks.
  for (const auto &[known, bytes] : known_)
    if (known == parts)
      return bytes;
  return known_.emplace_back(parts, compute(parts)).second;
}

std::vector<StateTable::Run> StateTable::runsOf(const RankParts &parts) const {
  std::vector<Run> runs;
  auto add = [&](const std::vector<RankTensor> &tensors, int64_t times = 1) {
    if (times > 0)
      runs.push_back({&tensors, times});
  };
  if (parts.first)
    add(tensors_.embedding);
  add(tensors_.denseLayer, parts.denseLayers);
  add(tensors_.moeLayer, parts.moeLayers);
  if (parts.last) {
    add(tensors_.finalNorm);
    // A tied head needs its own copy where the embedding is not.
    if (!model_.tied || !parts.first)
      add(tensors_.head);
    add(tensors_.mtp, model_.mtpLayers);
    // So does the embedding that multi-token prediction shares.
    if (model_.mtpLayers && !parts.first && !model_.tied)
      add(tensors_.embedding);
  }
  return runs;
}

StateTable::Padded StateTable::padBuckets(const std::vector<Run> &runs,
                                          bool expert) const {
  int64_t d = expert ? expertShards_ : shards_;
  int64_t multiple = std::lcm(d, int64_t{128});
  int64_t bucket = std::max<int64_t>(40000000, 1000000 * d);
  int64_t start = 0, end = 0;
  // Buckets are filled from the model's end, whose gradients come first.
  for (auto run = runs.rbegin(); run != runs.rend(); ++run)
    for (int64_t time = 0; time < run->times; ++time)
      for (auto tensor = run->tensors->rbegin(); tensor != run->tensors->rend();
           ++tensor) {
        if (tensor->expert != expert)
          continue;
        end = roundUp(end, 64) + tensor->elements();
        if (end - start >= bucket)
          start = end = roundUp(end, multiple);
      }
  end = roundUp(end, multiple);
  return {end, end / d};
}

StateTable::Padded StateTable::pad(const std::vector<Run> &runs,
                                   bool expert) const {
  if (representation_ == Representation::Megatron && zero_ >= 1)
    return padBuckets(runs, expert);
  int64_t d = expert ? expertShards_ : shards_;
  Padded sizes;
  for (const Run &run : runs)
    for (const RankTensor &tensor : *run.tensors) {
      if (tensor.expert != expert)
        continue;
      int64_t elements = tensor.elements();
      if (zero_ >= 3 && representation_ == Representation::DeepSpeed)
        elements = elements < 100000 ? elements * d : roundUp(elements, d);
      else if (shardsWeights())
        elements = roundUp(tensor.rows, d) * tensor.columns;
      sizes.padded += run.times * elements;
    }
  sizes.shard = (sizes.padded + d - 1) / d;
  return sizes;
}

int64_t StateTable::layerElements(const RankParts &parts, bool expert) const {
  return parts.denseLayers * elementsOf(tensors_.denseLayer, expert) +
         parts.moeLayers * elementsOf(tensors_.moeLayer, expert);
}

void StateTable::reckon(const std::vector<Run> &runs, StateBytes &bytes) const {
  bool full = precision_ == Precision::Fp32;
  uint64_t width = full ? 4 : 2;
  for (const Run &run : runs)
    for (const RankTensor &tensor : *run.tensors) {
      int64_t n = tensor.elements();
      int64_t d = tensor.expert ? expertShards_ : shards_;
      bool sharded = zero_ >= 1 && d > 1;
      int64_t shard = sharded ? shardElements(n, d) : n;
      int64_t padded = sharded ? shard * d : n;
      uint64_t times = run.times, moment = alignUp(4 * shard);
      bytes.parameters +=
          times * alignUp(width * (zero_ >= 3 ? shard : padded));
      bytes.gradients += times * alignUp(4 * (zero_ >= 2 ? shard : padded));
      bytes.optimizer += times * ((full ? 0 : moment) + 2 * moment);
      bytes.paddingElements += run.times * (padded - n);
    }
  // Whole gradients of the layer at work, and from stage 3 on whole weights of
  // it and of the next one. A rank without layers has its table at work.
  int64_t layer = 0, widest = 0;
  for (const Run &run : runs) {
    int64_t elements =
        elementsOf(*run.tensors, false) + elementsOf(*run.tensors, true);
    widest = std::max(widest, elements);
    if (run.tensors == &tensors_.denseLayer ||
        run.tensors == &tensors_.moeLayer)
      layer = std::max(layer, elements);
  }
  if (layer == 0)
    layer = widest;
  if (zero_ >= 2 && shards_ > 1)
    bytes.unitBytes = 4 * layer + (zero_ >= 3 ? 2 * width * layer : 0);
}

StateBytes StateTable::compute(const RankParts &parts) const {
  std::vector<Run> runs = runsOf(parts);
  auto whole = [&](bool expert) {
    int64_t sum = 0;
    for (const Run &run : runs)
      sum += run.times * elementsOf(*run.tensors, expert);
    return sum;
  };
  StateBytes bytes;
  bytes.expertElements = whole(true);
  bytes.elements = bytes.expertElements + whole(false);
  if (representation_ == Representation::Reckon) {
    reckon(runs, bytes);
    return bytes;
  }

  const MemoryProfile &p = profile_;
  bool full = precision_ == Precision::Fp32;
  double weight = full ? 4 : p.weight;
  double gradient = full ? 4 : reduceBf16_ ? 2 : p.gradient;
  double gradientShard = full || reduceBf16_ ? 0 : p.gradientShard;
  double optimizer = full ? 8 : p.optimizer;
  if (unitRelease_) {
    gradient = p.unitGradient;
    gradientShard = p.unitGradientShard;
  }
  // FSDP2 without resharding between the passes is ZeRO-2 with sharded fp32
  // weights.
  bool sharded = shardsWeights();
  for (bool expert : {false, true}) {
    int64_t elements = whole(expert);
    if (!elements)
      continue;
    Padded sizes = pad(runs, expert);
    bytes.paddingElements += sizes.padded - elements;
    if (sharded) {
      bytes.parameters += bytesOf(full ? 4 : p.shardedWeight, sizes.shard);
      bytes.gradients += bytesOf(full ? 4 : p.shardedGradient, sizes.shard);
      bytes.optimizer += bytesOf(full ? 8 : p.shardedOptimizer, sizes.shard);
      continue;
    }
    int64_t shard = zero_ >= 1 ? sizes.shard : sizes.padded;
    if (precision_ == Precision::Fp8)
      bytes.parameters += bytesOf(p.fp8Weights, layerElements(parts, expert));
    bytes.parameters += bytesOf(weight, sizes.padded);
    bytes.gradients += bytesOf(gradient, zero_ >= 2 ? shard : sizes.padded) +
                       bytesOf(gradientShard, shard);
    bytes.optimizer += bytesOf(optimizer, shard);
  }
  if (!sharded)
    return bytes;

  // Whole weights and gradients of the layers at work; the last unit, norm and
  // head, stays gathered from the forward to the backward.
  auto elements = [](const std::vector<RankTensor> &part) {
    return elementsOf(part, false) + elementsOf(part, true);
  };
  int64_t layer =
      std::max(parts.denseLayers ? elements(tensors_.denseLayer) : 0,
               parts.moeLayers ? elements(tensors_.moeLayer) : 0);
  double width = full ? 4 : 2;
  if (pp_ > 1 && p.pipelineKeepsUnits > 0) {
    bytes.unitBytes = bytesOf(width + 4, bytes.elements);
    return bytes;
  }
  int64_t head = parts.last ? elements(tensors_.head) : 0;
  bytes.unitBytes =
      bytesOf(p.unreducedUnits * p.unreducedBytes, std::max(layer, head));
  bytes.unitBytes += zero_ == 2 ? bytesOf(width, bytes.elements)
                                : bytesOf(p.gatheredUnits * width, layer) +
                                      bytesOf(width, head);
  return bytes;
}
