//===- Accountant.cpp - where every byte of a rank goes -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Accountant.h"

#include "passes/model/account/Account.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace reckon;
using namespace reckon::model;

const char *model::toString(MemoryCategory category) {
  switch (category) {
  case MemoryCategory::Parameters:
    return "parameters";
  case MemoryCategory::Gradients:
    return "gradients";
  case MemoryCategory::Optimizer:
    return "optimizer";
  case MemoryCategory::Activations:
    return "activations";
  case MemoryCategory::Logits:
    return "logits";
  case MemoryCategory::Communication:
    return "communication";
  case MemoryCategory::Workspace:
    return "workspace";
  case MemoryCategory::Reserve:
    return "reserve";
  }
  return "?";
}

const char *model::toString(MemoryBasis basis) {
  switch (basis) {
  case MemoryBasis::Exact:
    return "exact";
  case MemoryBasis::Calibrated:
    return "calibrated";
  case MemoryBasis::Reserve:
    return "reserve";
  }
  return "?";
}

uint64_t MemoryTimeline::peak() const {
  uint64_t most = 0;
  for (const MemoryPoint &point : points)
    most = std::max(most, point.total());
  return most;
}

static ModelDims dimsOf(const ModelShape &m) {
  return {.vocab = m.vocab,
          .hidden = m.hidden,
          .ffn = m.ffn,
          .layers = m.layers,
          .heads = m.heads,
          .kvHeads = m.kvHeads,
          .headDim = m.headDim,
          .sequence = m.sequence};
}

struct Accountant::Impl {
  Impl(const Job &job, MemoryProfile memoryProfile)
      : job(job), profile(std::move(memoryProfile)),
        stages(dimsOf(job.model), job.reserveBytes),
        lowered(job.representation == Representation::Reckon &&
                whyNotCompilable(job.model).empty()) {}

  /// What the layout, the recompute mode per stage and the like do not touch.
  static Choice frameKey(const model::Choice &choice) {
    Choice key = choice;
    key.layout.clear();
    key.recomputeLayers.clear();
    return key;
  }

  ChoiceFrame &frame(const model::Choice &choice) {
    // A framework that can gather again in the backward does when it must.
    bool mayGatherAgain = profile.gatheredNorms > 0 && choice.sequenceParallel;
    Choice key = mayGatherAgain ? choice : frameKey(choice);
    if (last && lastKey == key)
      return *last;
    last.emplace(job, profile, choice);
    lastKey = std::move(key);
    if (mayGatherAgain && peakOf(choice) > capacity()) {
      MemoryProfile again = profile;
      again.gatheredNorms = 0;
      last.emplace(job, again, choice);
    }
    return *last;
  }

  uint64_t capacity() const {
    double bytes = job.device.memGb * 1073741824.0;
    return bytes > 0 ? static_cast<uint64_t>(bytes) - job.reserveBytes
                     : UINT64_MAX;
  }

  uint64_t peakOf(const model::Choice &choice) {
    uint64_t most = 0;
    for (int64_t rank = 0; rank < choice.pp; ++rank) {
      SumSink sink;
      accountRank(job, *last, choice, rank, sink);
      most = std::max(most, sink.memory.arena());
    }
    return most;
  }

  Job job;
  MemoryProfile profile;
  StageModel stages;
  bool lowered; ///< the compiler can lower the model
  std::optional<ChoiceFrame> last;
  Choice lastKey;
};

Accountant::Accountant(const Job &job)
    : Accountant(job, memoryProfile(job.profile, job.representation)) {}

Accountant::Accountant(const Job &job, MemoryProfile profile)
    : impl_(std::make_unique<Impl>(job, std::move(profile))) {}

Accountant::~Accountant() = default;
Accountant::Accountant(Accountant &&) noexcept = default;
Accountant &Accountant::operator=(Accountant &&) noexcept = default;

const Job &Accountant::job() const { return impl_->job; }
const MemoryProfile &Accountant::profile() const { return impl_->profile; }

/// Whether every split comes out even, as StageModel needs.
static bool divides(const ModelShape &m, const model::Choice &choice) {
  return m.heads % choice.tp == 0 && m.kvHeads % choice.tp == 0 &&
         m.ffn % choice.tp == 0 && m.vocab % choice.tp == 0 &&
         m.sequence % choice.tp == 0;
}

bool Accountant::exact(const model::Choice &choice) const {
  return impl_->lowered && whyNotCompilable(choice).empty() &&
         divides(impl_->job.model, choice);
}

StageMemory Accountant::memory(const model::Choice &choice, int64_t ppRank) {
  if (exact(choice))
    return impl_->stages.memory(choice, ppRank);
  SumSink sink;
  accountRank(impl_->job, impl_->frame(choice), choice, ppRank, sink);
  return sink.memory;
}

std::vector<MemoryItem> Accountant::items(const model::Choice &choice,
                                          int64_t ppRank) {
  if (exact(choice)) {
    StageMemory memory = impl_->stages.memory(choice, ppRank);
    std::string source = "sizes of the compiled plan's buffers";
    std::vector<MemoryItem> items;
    auto add = [&](MemoryCategory category, const char *name, uint64_t bytes,
                   MemoryBasis basis = MemoryBasis::Exact) {
      if (bytes)
        items.push_back({category, name, bytes, basis, source});
    };
    add(MemoryCategory::Parameters, "weights", memory.parameters);
    add(MemoryCategory::Gradients, "gradients", memory.gradients);
    add(MemoryCategory::Optimizer, "optimizer states", memory.optimizer);
    add(MemoryCategory::Activations, "stashes and inputs", memory.activations);
    add(MemoryCategory::Logits, "logits", memory.logits);
    add(MemoryCategory::Communication, "pipeline messages",
        memory.communication);
    add(MemoryCategory::Workspace, "values in a fragment", memory.workspace);
    source = "cluster.memory_reserve_gib";
    add(MemoryCategory::Reserve, "driver and libraries", memory.reserve,
        MemoryBasis::Reserve);
    return items;
  }
  ItemSink sink;
  accountRank(impl_->job, impl_->frame(choice), choice, ppRank, sink);
  return std::move(sink.items);
}

PeakMemory Accountant::peak(const model::Choice &choice) {
  PeakMemory peak;
  for (int64_t rank = 0; rank < choice.pp; ++rank) {
    uint64_t arena = memory(choice, rank).arena();
    if (arena > peak.arena)
      peak = {arena, rank};
  }
  return peak;
}

uint64_t Accountant::lowerBound(const model::Choice &choice) {
  // The fullest rank has at least its share of the layers' states.
  ChoiceFrame &frame = impl_->frame(choice);
  const ModelShape &m = impl_->job.model;
  int64_t dense = m.isMoe() ? std::min(m.firstDense, m.layers) : m.layers;
  RankParts parts{.denseLayers = dense / choice.pp,
                  .moeLayers = (m.layers - dense) / choice.pp};
  const StateBytes &states = frame.states.rank(parts);
  return states.parameters + states.gradients + states.optimizer;
}

namespace {

/// As evenly as possible; what is left goes to the middle stages from the
/// back, then to the first, then to the last.
std::vector<int64_t> spreadEvenly(int64_t layers, int64_t stages) {
  std::vector<int64_t> layout(stages, layers / stages);
  int64_t left = layers % stages;
  for (int64_t stage = stages - 2; stage >= 1 && left > 0; --stage, --left)
    ++layout[stage];
  if (left > 0) {
    ++layout[0];
    --left;
  }
  if (left > 0)
    ++layout[stages - 1];
  return layout;
}

/// By parameters, the head's included: a stage takes layers until it has
/// passed its share, as nanotron does.
std::vector<int64_t> spreadByCost(const ModelShape &model, int64_t stages) {
  LayerParameters layer = model.layerParameters(model.isMoe());
  double head = static_cast<double>(model.vocab * model.hidden) /
                static_cast<double>(layer.total() - layer.norms);
  double share =
      (static_cast<double>(model.layers) + head) / static_cast<double>(stages);
  std::vector<int64_t> layout(stages, 0);
  int64_t stage = 0;
  for (int64_t done = 1; done <= model.layers; ++done) {
    ++layout[stage];
    if (static_cast<double>(done) > share * static_cast<double>(stage + 1) &&
        stage + 1 < stages)
      ++stage;
  }
  return layout;
}

/// Embedding and head count as a layer each.
std::vector<int64_t> spreadAsUnits(int64_t layers, int64_t stages) {
  std::vector<int64_t> layout = spreadEvenly(layers + 2, stages);
  --layout.front();
  --layout.back();
  return layout;
}

} // namespace

std::vector<int64_t> model::defaultLayout(const Job &job,
                                          const MemoryProfile &profile,
                                          const model::Choice &choice) {
  int64_t stages = choice.stages(), layers = job.model.layers;
  if (stages > 1 && profile.layout == 1)
    return spreadByCost(job.model, stages);
  bool units = job.representation != Representation::Reckon &&
               (layers + 2) % stages == 0;
  if (stages > 1 && units && layers + 2 >= 2 * stages)
    return spreadAsUnits(layers, stages);
  return spreadEvenly(layers, stages);
}
