//===- Stash.cpp - chunks of a choice, and what they keep in flight -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Account.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

std::vector<ChunkLayers> model::chunksOf(const ModelShape &model,
                                         const model::Choice &choice) {
  int64_t stages = static_cast<int64_t>(choice.layout.size()), layer = 0;
  int64_t dense =
      model.isMoe() ? std::min(model.firstDense, model.layers) : model.layers;
  std::vector<ChunkLayers> chunks(stages);
  for (int64_t stage = 0; stage < stages; ++stage) {
    int64_t end = layer + choice.layout[stage];
    ChunkLayers &chunk = chunks[stage];
    chunk.dense = std::clamp(dense, layer, end) - layer;
    chunk.moe = end - layer - chunk.dense;
    if (!choice.recomputeLayers.empty())
      chunk.recomputed = std::min(choice.recomputeLayers[stage], end - layer);
    else if (choice.recompute == Recompute::Full)
      chunk.recomputed = end - layer;
    layer = end;
  }
  if (stages) {
    chunks.front().first = true;
    chunks.back().last = true;
  }
  return chunks;
}

RankParts ChoiceFrame::parts(int64_t rank) const {
  RankParts parts;
  for (int64_t i = 0; i < shape.v; ++i) {
    const ChunkLayers &chunk = chunks[stageOf(rank, i)];
    parts.denseLayers += chunk.dense;
    parts.moeLayers += chunk.moe;
    parts.first |= chunk.first;
    parts.last |= chunk.last;
  }
  return parts;
}

LaneBytes ChoiceFrame::lane(int64_t rank) const {
  LaneBytes widest;
  for (int64_t i = 0; i < shape.v; ++i) {
    LaneBytes lane = lanes->laneOf(*this, chunks[stageOf(rank, i)]);
    widest.lane = std::max(widest.lane, lane.lane);
    widest.logits = std::max(widest.logits, lane.logits);
  }
  return widest;
}

/// Layers that are not fully recomputed beside ones that are keep everything.
static Recompute restMode(const model::Choice &choice) {
  return choice.recompute == Recompute::Selective ? Recompute::Selective
                                                  : Recompute::None;
}

uint64_t model::stashBytes(const ChoiceFrame &frame, const ChunkLayers &chunk) {
  const ActivationBytes &a = frame.activations;
  Recompute rest = restMode(frame.choice);
  int64_t fullDense = std::min(chunk.recomputed, chunk.dense);
  int64_t fullMoe = std::min(chunk.recomputed - fullDense, chunk.moe);
  uint64_t bytes = fullDense * a.dense.input +
                   (chunk.dense - fullDense) * a.dense.kept(rest) +
                   fullMoe * a.moe.input +
                   (chunk.moe - fullMoe) * a.moe.kept(rest);
  if (frame.job.representation != Representation::Reckon)
    return bytes;
  // The input of a stage has a slot of its own, the head reads one more. A
  // stage of embedding or head alone keeps nothing: its gradients read the
  // tokens and that slot.
  if (chunk.layers() == 0)
    return 0;
  if (!chunk.first)
    bytes -= a.hidden;
  if (chunk.last)
    bytes += a.hidden;
  return bytes;
}

SplitStash model::splitStash(const ChoiceFrame &frame,
                             const ChunkLayers &chunk) {
  const ActivationBytes &a = frame.activations;
  int64_t fullDense = std::min(chunk.recomputed, chunk.dense);
  int64_t fullMoe = std::min(chunk.recomputed - fullDense, chunk.moe);
  SplitStash split;
  // Of a layer that is not recomputed the inputs of matmuls stay; one that is
  // has them only once its backward has begun.
  split.toWeight = (chunk.dense - fullDense) * a.dense.matmulInputs +
                   (chunk.moe - fullMoe) * a.moe.matmulInputs;
  uint64_t whole = stashBytes(frame, chunk);
  split.toWeight = std::min(split.toWeight, whole);
  split.toInput = whole - split.toWeight;
  split.gradient = chunk.dense * a.dense.matmulGradients +
                   chunk.moe * a.moe.matmulGradients +
                   fullDense * a.dense.matmulInputs +
                   fullMoe * a.moe.matmulInputs;
  return split;
}

PeakStash model::peakStash(const ChoiceFrame &frame, int64_t rank) {
  const ScheduleShape &shape = frame.shape;
  int64_t v = shape.v;
  const ChunkLayers &leading = frame.chunks[frame.stageOf(rank, 0)];
  uint64_t one = stashBytes(frame, leading);
  bool split = frame.given ? frame.given->splits : splitsBackward(shape.kind);
  bool equal = true;
  for (int64_t i = 1; i < v && equal; ++i)
    equal = stashBytes(frame, frame.chunks[frame.stageOf(rank, i)]) == one;
  if (!frame.defined && !frame.given) {
    // An order that nobody has made yet: as much as a one-forward
    // one-backward pipeline's first rank.
    PeakStash peak{0, v * std::min(shape.m, shape.p)};
    for (int64_t i = 0; i < v; ++i)
      peak.bytes += std::min(shape.m, shape.p) *
                    stashBytes(frame, frame.chunks[frame.stageOf(rank, i)]);
    return peak;
  }
  if (equal && !split && !frame.given) {
    int64_t count = peakFormula(shape, rank);
    return {count * one, count};
  }

  const InFlight &inFlight =
      frame.given ? frame.given->inFlight[static_cast<size_t>(rank)]
                  : model::inFlight(shape, rank);
  PeakStash peak{0, inFlight.peak};
  for (const std::vector<LiveStash> &moment : inFlight.maximal) {
    uint64_t bytes = 0;
    for (int64_t i = 0; i < v; ++i) {
      const ChunkLayers &chunk = frame.chunks[frame.stageOf(rank, i)];
      if (!split) {
        bytes += moment[i].toWeight * stashBytes(frame, chunk);
        continue;
      }
      SplitStash stash = splitStash(frame, chunk);
      bytes += moment[i].toInput * stash.toInput +
               moment[i].toWeight * stash.toWeight +
               moment[i].gradient * stash.gradient;
    }
    peak.bytes = std::max(peak.bytes, bytes);
  }
  return peak;
}
