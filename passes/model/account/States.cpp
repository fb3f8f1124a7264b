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

static void append(std::vector<RankTensor> &to,
                   const std::vector<RankTensor> &from, int64_t times = 1) {
  for (; times > 0; --times)
    to.insert(to.end(), from.begin(), from.end());
}

StateTable::StateTable(const Job &job, const MemoryProfile &profile,
                       const model::Choice &choice)
    : model_(job.model), profile_(profile), representation_(job.representation),
      precision_(choice.precision),
      unitRelease_(profile.unitGradient > 0 &&
                   job.model.layers % choice.stages() != 0 &&
                   (job.model.layers + 2) % choice.stages() == 0),
      reduceBf16_(job.gradReduce == GradReduceDtype::Bf16), zero_(choice.zero),
      pp_(choice.pp), shards_(denseShardsOf(choice)),
      expertShards_(std::max<int64_t>(1, choice.edp())),
      tensors_(job.model, choice,
               /*fused=*/job.representation == Representation::Megatron,
               static_cast<int64_t>(profile.vocabularyMultiple)) {}

const StateBytes &StateTable::rank(const RankParts &parts) {
  auto found = known_.find(parts);
  if (found == known_.end())
    found = known_.emplace(parts, compute(parts)).first;
  return found->second;
}

std::vector<RankTensor> StateTable::tensorsOf(const RankParts &parts) const {
  std::vector<RankTensor> tensors;
  if (parts.first)
    append(tensors, tensors_.embedding);
  append(tensors, tensors_.denseLayer, parts.denseLayers);
  append(tensors, tensors_.moeLayer, parts.moeLayers);
  if (parts.last) {
    append(tensors, tensors_.finalNorm);
    // A tied head needs its own copy where the embedding is not.
    if (!model_.tied || !parts.first)
      append(tensors, tensors_.head);
    append(tensors, tensors_.mtp, model_.mtpLayers);
    // So does the embedding that multi-token prediction shares.
    if (model_.mtpLayers && !parts.first && !model_.tied)
      append(tensors, tensors_.embedding);
  }
  return tensors;
}

StateTable::Padded StateTable::pad(const std::vector<RankTensor> &tensors,
                                   bool expert) const {
  int64_t d = expert ? expertShards_ : shards_;
  Padded sizes;
  int64_t start = 0;
  auto add = [&](const RankTensor &tensor) {
    int64_t elements = tensor.elements();
    if (representation_ == Representation::Megatron && zero_ >= 1) {
      int64_t bucket = std::max<int64_t>(40000000, 1000000 * d);
      sizes.padded = roundUp(sizes.padded, 64) + elements;
      if (sizes.padded - start >= bucket)
        start = sizes.padded = roundUp(sizes.padded, std::lcm(d, int64_t{128}));
      return;
    }
    if (zero_ >= 3 && representation_ == Representation::DeepSpeed) {
      sizes.padded += elements < 100000 ? elements * d : roundUp(elements, d);
      return;
    }
    if (zero_ >= 3) {
      sizes.padded += roundUp(tensor.rows, d) * tensor.columns;
      return;
    }
    sizes.padded += elements;
  };
  // Buckets are filled from the model's end, whose gradients come first.
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor)
    if (tensor->expert == expert)
      add(*tensor);
  if (representation_ == Representation::Megatron && zero_ >= 1)
    sizes.padded = roundUp(sizes.padded, std::lcm(d, int64_t{128}));
  sizes.shard = (sizes.padded + d - 1) / d;
  return sizes;
}

void StateTable::reckon(const std::vector<RankTensor> &tensors,
                        StateBytes &bytes) const {
  bool full = precision_ == Precision::Fp32;
  uint64_t width = full ? 4 : 2;
  for (const RankTensor &tensor : tensors) {
    int64_t n = tensor.elements();
    int64_t d = tensor.expert ? expertShards_ : shards_;
    bool sharded = zero_ >= 1 && d > 1;
    int64_t shard = sharded ? shardElements(n, d) : n;
    int64_t padded = sharded ? shard * d : n;
    bytes.parameters += alignUp(width * (zero_ >= 3 ? shard : padded));
    bytes.gradients += alignUp(4 * (zero_ >= 2 ? shard : padded));
    bytes.optimizer += (full ? 0 : alignUp(4 * shard)) + 2 * alignUp(4 * shard);
    bytes.paddingElements += padded - n;
  }
  if (zero_ >= 3) {
    // The layer at work and the next one, gathered.
    int64_t layer = 0;
    for (const auto *part : {&tensors_.denseLayer, &tensors_.moeLayer})
      layer =
          std::max(layer, elementsOf(*part, false) + elementsOf(*part, true));
    bytes.unitBytes = 2 * width * layer + 4 * layer;
  }
}

StateBytes StateTable::compute(const RankParts &parts) const {
  std::vector<RankTensor> tensors = tensorsOf(parts);
  StateBytes bytes;
  bytes.expertElements = elementsOf(tensors, true);
  bytes.elements = bytes.expertElements + elementsOf(tensors, false);
  if (representation_ == Representation::Reckon) {
    reckon(tensors, bytes);
    return bytes;
  }

  const MemoryProfile &p = profile_;
  bool full = precision_ == Precision::Fp32;
  double weight = full ? 4 : p.weight;
  double gradient = full ? 4 : reduceBf16_ ? 2 : p.gradient;
  double gradientShard = full ? 0 : reduceBf16_ ? 4 : p.gradientShard;
  double optimizer = full ? 8 : p.optimizer;
  if (unitRelease_) {
    gradient = p.unitGradient;
    gradientShard = p.unitGradientShard;
  }
  for (bool expert : {false, true}) {
    int64_t whole = elementsOf(tensors, expert);
    if (!whole)
      continue;
    Padded sizes = pad(tensors, expert);
    bytes.paddingElements += sizes.padded - whole;
    if (zero_ >= 3) {
      bytes.parameters += bytesOf(full ? 4 : p.shardedWeight, sizes.shard);
      bytes.gradients += bytesOf(full ? 4 : p.shardedGradient, sizes.shard);
      bytes.optimizer += bytesOf(full ? 8 : p.shardedOptimizer, sizes.shard);
      continue;
    }
    int64_t shard = zero_ >= 1 ? sizes.shard : sizes.padded;
    bytes.parameters += bytesOf(weight, sizes.padded);
    bytes.gradients += bytesOf(gradient, zero_ >= 2 ? shard : sizes.padded) +
                       bytesOf(gradientShard, shard);
    bytes.optimizer += bytesOf(optimizer, shard);
  }
  if (zero_ < 3)
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
  int64_t gathered = bytesOf(p.gatheredUnits * width, layer);
  bytes.unitBytes =
      gathered +
      bytesOf(p.unreducedUnits * p.unreducedBytes, std::max(layer, head)) +
      bytesOf(width, head);
  return bytes;
}
