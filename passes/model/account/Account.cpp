//===- Account.cpp - the account of one rank, line by line ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Account.h"

#include "passes/model/Layout.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace reckon;
using namespace reckon::model;

using Category = MemoryCategory;

namespace {

constexpr double kGib = 1073741824.0;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

std::string number(uint64_t value) { return std::to_string(value); }
std::string number(int64_t value) { return std::to_string(value); }

uint64_t scaled(double factor, uint64_t bytes) {
  return static_cast<uint64_t>(
      std::llround(factor * static_cast<double>(bytes)));
}

} // namespace

ChoiceFrame::ChoiceFrame(const Job &job, const MemoryProfile &profile,
                         const model::Choice &choice)
    : profile(profile), states(job, this->profile, choice),
      activations(activationBytes(job, profile, choice,
                                  states.tensors().vocabularyRows)) {}

std::vector<ChunkLayers>
model::chunksOf(const Job &job, const model::Choice &choice, int64_t ppRank) {
  std::vector<ChunkLayers> chunks;
  int64_t stages = static_cast<int64_t>(choice.layout.size()), layer = 0;
  int64_t dense = job.model.isMoe()
                      ? std::min(job.model.firstDense, job.model.layers)
                      : job.model.layers;
  for (int64_t stage = 0; stage < stages; ++stage) {
    int64_t end = layer + choice.layout[stage];
    if (pipelineRankOf(choice, stage) == ppRank) {
      ChunkLayers chunk;
      chunk.dense = std::clamp(dense, layer, end) - layer;
      chunk.moe = end - layer - chunk.dense;
      chunk.first = stage == 0;
      chunk.last = stage == stages - 1;
      if (!choice.recomputeLayers.empty())
        chunk.recomputed = choice.recomputeLayers[stage];
      else if (choice.recompute == Recompute::Full)
        chunk.recomputed = end - layer;
      chunks.push_back(chunk);
    }
    layer = end;
  }
  return chunks;
}

uint64_t model::stashBytes(const ActivationBytes &bytes,
                           const model::Choice &choice,
                           const ChunkLayers &chunk) {
  // Layers that are not fully recomputed beside ones that are keep everything.
  Recompute rest = choice.recompute == Recompute::Selective
                       ? Recompute::Selective
                       : Recompute::None;
  int64_t fullDense = std::min(chunk.recomputed, chunk.dense);
  int64_t fullMoe = std::min(chunk.recomputed - fullDense, chunk.moe);
  return fullDense * bytes.dense.input +
         (chunk.dense - fullDense) * bytes.dense.kept(rest) +
         fullMoe * bytes.moe.input +
         (chunk.moe - fullMoe) * bytes.moe.kept(rest);
}

uint64_t model::inFlightBytes(const ActivationBytes &bytes,
                              const MemoryProfile &profile,
                              const model::Choice &choice,
                              const ChunkLayers &chunk) {
  uint64_t sum = chunk.first ? bytes.embedding : 0;
  if (choice.pp > 1)
    sum += scaled(profile.pipelineBuffers / 2, bytes.hidden);
  return sum;
}

/// The most bytes that stashes hold at once, and how many there are then.
static std::pair<uint64_t, int64_t>
peakStash(ChoiceFrame &frame, const MemoryProfile &profile,
          const model::Choice &choice, int64_t ppRank,
          const std::vector<ChunkLayers> &chunks, bool slots) {
  auto [entry, isNew] = frame.live.try_emplace(ppRank);
  if (isNew)
    entry->second = peakLiveVectors(choice, ppRank);
  std::pair<uint64_t, int64_t> best{0, 0};
  for (const LiveVector &live : entry->second) {
    uint64_t bytes = 0;
    int64_t count = 0;
    for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
      uint64_t one =
          slots
              ? inFlightBytes(frame.activations, profile, choice, chunks[chunk])
              : stashBytes(frame.activations, choice, chunks[chunk]);
      bytes += live[chunk] * one;
      count += live[chunk];
    }
    if (bytes > best.first || count > best.second)
      best = {std::max(bytes, best.first), std::max(count, best.second)};
  }
  return best;
}

template <typename Sink>
void model::accountRank(const Job &job, ChoiceFrame &frame,
                        const model::Choice &choice, int64_t ppRank,
                        Sink &sink) {
  const ActivationBytes &a = frame.activations;
  const MemoryProfile &p = frame.profile;
  const bool ours = job.representation == Representation::Reckon;
  RankParts parts = rankParts(job.model, choice, ppRank);
  const StateBytes &states = frame.states.rank(parts);
  std::vector<ChunkLayers> chunks = chunksOf(job, choice, ppRank);

  auto elements = [&] {
    return number(states.elements) + " elements" +
           (states.expertElements
                ? " (" + number(states.expertElements) + " of experts)"
                : std::string()) +
           ", " + number(states.paddingElements) + " padding, zero_stage " +
           number(choice.zero) + " over " + number(frame.states.denseShards()) +
           " ranks" +
           (states.expertElements
                ? ", experts over " + number(frame.states.expertShards())
                : std::string());
  };
  sink.add(Category::Parameters, states.parameters, MemoryBasis::Exact,
           "weights", elements);
  sink.add(Category::Gradients, states.gradients, MemoryBasis::Exact,
           "gradients", elements);
  sink.add(Category::Optimizer, states.optimizer, MemoryBasis::Exact,
           "optimizer states", elements);

  // Activations.
  auto [stash, count] = peakStash(frame, p, choice, ppRank, chunks, false);
  bool constants = !ours || job.model.isMoe();
  MemoryBasis basis = constants ? MemoryBasis::Calibrated : MemoryBasis::Exact;
  sink.add(Category::Activations, stash, basis, "saved by layers", [&] {
    return number(count) + " chunks of micro-batches in flight; a layer of " +
           number(a.dense.whole()) + " B keeps " +
           number(a.dense.kept(choice.recompute)) + " B" +
           (job.model.isMoe() ? ", one with experts " +
                                    number(a.moe.kept(choice.recompute)) + " B"
                              : std::string());
  });
  uint64_t inFlight = peakStash(frame, p, choice, ppRank, chunks, true).first;
  sink.add(Category::Activations, inFlight, basis, "inputs in flight",
           [&] { return number(count) + " micro-batches"; });
  uint64_t live = 0;
  bool recomputes = false, hasMoe = false, hasDense = false;
  for (const ChunkLayers &chunk : chunks) {
    recomputes |= chunk.recomputed > 0;
    hasMoe |= chunk.moe > 0;
    hasDense |= chunk.dense > 0;
  }
  uint64_t layer =
      std::max(hasDense ? a.dense.whole() : 0, hasMoe ? a.moe.whole() : 0);
  if (recomputes)
    live = scaled(p.liveLayers, layer);
  sink.add(Category::Activations, live, MemoryBasis::Calibrated,
           "layer being recomputed",
           [&] { return number(p.liveLayers) + " x " + number(layer) + " B"; });
  if (parts.last)
    sink.add(Category::Activations, a.head, MemoryBasis::Exact, "final norm",
             [&] { return std::string("input and output"); });

  // Logits.
  if (parts.last)
    sink.add(Category::Logits, a.logits, MemoryBasis::Calibrated, "logits",
             [&] {
               return number(p.logits) + " B each, " +
                      number(frame.states.tensors().vocabularyRows) +
                      " rows of the vocabulary";
             });

  // Communication.
  if (choice.sequenceParallel)
    sink.add(Category::Communication, scaled(p.gatheredCopies, a.gathered),
             MemoryBasis::Calibrated, "gathered by sequence parallelism", [&] {
               return number(p.gatheredCopies) + " x " + number(a.gathered) +
                      " B";
             });
  if (choice.pp > 1) {
    uint64_t messages = (ppRank > 0 || choice.v > 1 ? 2 : 0) +
                        (ppRank + 1 < choice.pp || choice.v > 1 ? 2 : 0);
    sink.add(Category::Communication, messages * a.hidden, MemoryBasis::Exact,
             "pipeline messages", [&] {
               return number(messages) + " x " + number(a.hidden) + " B";
             });
  }
  if (a.keyValue)
    sink.add(Category::Communication, 2 * a.keyValue, MemoryBasis::Exact,
             "keys and values of other ranks",
             [&] { return "2 x " + number(a.keyValue) + " B"; });
  if (hasMoe && choice.ep > 1)
    sink.add(Category::Communication, 2 * a.dispatch, MemoryBasis::Calibrated,
             "rows sent to experts",
             [&] { return "2 x " + number(a.dispatch) + " B"; });
  sink.add(Category::Communication, states.unitBytes, MemoryBasis::Calibrated,
           "gathered weights and whole gradients", [&] {
             return number(p.gatheredUnits) + " layers gathered, " +
                    number(p.unreducedUnits) + " not reduced";
           });
  if (choice.zero >= 1 && choice.dp * choice.cp > 1)
    sink.add(Category::Communication,
             static_cast<uint64_t>(std::llround(p.bucketBytes)),
             MemoryBasis::Calibrated, "buckets",
             [&] { return number(p.bucketBytes) + " B"; });

  // Workspace.
  uint64_t temporaries = recomputes ? 0 : a.temporaries;
  sink.add(Category::Workspace, temporaries, basis, "gradients in a layer",
           [&] { return std::string("widest values of one layer"); });
  uint64_t dynamic = stash + inFlight + live + temporaries +
                     (parts.last ? a.head + a.logits : 0);
  uint64_t whole = states.parameters + states.gradients + states.optimizer;
  sink.add(
      Category::Workspace,
      scaled(p.allocator - 1, dynamic) + scaled(p.stateAllocator - 1, whole),
      MemoryBasis::Calibrated, "allocator's loss", [&] {
        return number(p.allocator - 1) + " x " + number(dynamic) + " B + " +
               number(p.stateAllocator - 1) + " x " + number(whole) + " B";
      });
  sink.add(Category::Workspace, scaled(p.fixedGib, 1073741824),
           MemoryBasis::Calibrated, "fixed cost",
           [&] { return number(p.fixedGib) + " GiB"; });
  sink.add(Category::Reserve, job.reserveBytes, MemoryBasis::Reserve,
           "driver and libraries",
           [&] { return number(job.reserveBytes / kGib) + " GiB"; });
}

template void model::accountRank(const Job &, ChoiceFrame &,
                                 const model::Choice &, int64_t, SumSink &);
template void model::accountRank(const Job &, ChoiceFrame &,
                                 const model::Choice &, int64_t, ItemSink &);
