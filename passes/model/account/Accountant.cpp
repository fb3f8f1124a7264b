//===- Accountant.cpp - where every byte of a rank goes -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Accountant.h"

#include "passes/model/KeyCache.h"
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

static ModelDims dimsOf(const ModelShape &m, int64_t cp) {
  return {.vocab = m.vocab,
          .hidden = m.hidden,
          .ffn = m.ffn,
          .layers = m.layers,
          .heads = m.heads,
          .kvHeads = m.kvHeads,
          .headDim = m.headDim,
          .sequence = m.sequence / cp};
}

/// Whether every split comes out even, as LayerMirror needs.
static bool divides(const ModelShape &m, const model::Choice &choice) {
  return m.heads % choice.tp == 0 && m.kvHeads % choice.tp == 0 &&
         m.ffn % choice.tp == 0 && m.vocab % choice.tp == 0 &&
         m.sequence % choice.cp == 0 &&
         (!choice.sequenceParallel ||
          choice.microBatch * (m.sequence / choice.cp) % choice.tp == 0);
}

struct Accountant::Impl final : LaneSource {
  Impl(const Job &job, MemoryProfile memoryProfile)
      : job(job), profile(std::move(memoryProfile)), again(profile),
        lowered(job.representation == Representation::Reckon &&
                whyNotCompilable(job.model).empty()),
        mirrored(!job.model.isMoe() && !job.model.isMla() && job.model.gated) {
    again.gatheredNorms = 0;
  }

  /// As whyNotCompilable(), which builds a sentence.
  bool exact(const model::Choice &c) const {
    return lowered && c.v == 1 && c.cp == 1 && c.ep == 1 && c.etp == 1 &&
           c.zero <= 1 && whyNotCompilable(c).empty() && divides(job.model, c);
  }

  /// The choice's account but for what differs from rank to rank. Valid until
  /// the next call.
  const ChoiceFrame &frame(const model::Choice &choice) {
    Frame &f = frame_;
    bool same = f.made && f.choice == choice;
    if (same)
      return *f.made;
    f.choice = choice;
    f.made.reset();
    build(profile);
    // A framework that can gather again in the backward does when it must:
    // above nine tenths of the card a caching allocator slows runs down.
    if (profile.gatheredNorms > 0 && choice.sequenceParallel &&
        peak(*f.made, capacity() / 10 * 9).arena > capacity() / 10 * 9) {
      f.made.reset();
      build(again);
    }
    return *f.made;
  }

  static PeakMemory peak(const ChoiceFrame &frame, uint64_t enough) {
    // Of ranks with equal layers the first holds most micro-batches in flight,
    // but for schedules that fill all ranks alike or the last ones most.
    const ScheduleShape &shape = frame.shape;
    bool falls = shape.kind == ScheduleKind::OneFOneB ||
                 shape.kind == ScheduleKind::Interleaved ||
                 shape.kind == ScheduleKind::GPipe ||
                 shape.kind == ScheduleKind::Bfs;
    PeakMemory peak;
    for (int64_t rank = 0; rank < shape.p; ++rank) {
      // Rank 0 and the last one send fewer messages, so compare others only.
      if (falls && rank >= 2 && rank + 1 < shape.p &&
          sameLayers(frame, rank - 1, rank))
        continue;
      SumSink sink;
      accountRank(frame, rank, sink);
      if (sink.arena() > peak.arena)
        peak = {sink.arena(), rank};
      if (peak.arena > enough)
        break;
    }
    return peak;
  }

  static bool sameLayers(const ChoiceFrame &frame, int64_t a, int64_t b) {
    for (int64_t i = 0; i < frame.shape.v; ++i)
      if (frame.chunks[frame.stageOf(a, i)] !=
          frame.chunks[frame.stageOf(b, i)])
        return false;
    return true;
  }

  uint64_t capacity() const {
    int64_t bytes = job.device.memoryBytes();
    return bytes > 0 ? static_cast<uint64_t>(bytes) - job.reserveBytes
                     : UINT64_MAX;
  }

  StageModel &stages(int64_t cp) {
    return stages_.get({cp}, [&] {
      return StageModel(dimsOf(job.model, cp), job.reserveBytes);
    });
  }

  Job job;
  MemoryProfile profile;
  MemoryProfile again; ///< gathers twice
  bool lowered;        ///< the compiler can lower the model
  bool mirrored;       ///< its fragments are those of LayerMirror

  StateTable &states(const model::Choice &c) {
    const TensorTable &tensors = tensors_.get({c.tp, c.ep, c.etp}, [&] {
      return TensorTable(job.model, c,
                         job.representation == Representation::Megatron,
                         static_cast<int64_t>(profile.vocabularyMultiple));
    });
    return states_.get({c.tp, c.ep, c.etp, denseShardsOf(c), c.edp(), c.zero,
                        c.pp > 1, isUnitRelease(profile, job, c),
                        static_cast<int64_t>(c.precision)},
                       [&] { return StateTable(job, profile, tensors, c); });
  }

private:
  void build(const MemoryProfile &p) {
    const model::Choice &c = frame_.choice;
    int64_t precision = static_cast<int64_t>(c.precision);
    int64_t method = static_cast<int64_t>(c.contextMethod);
    StateTable &states = this->states(c);
    const ActivationBytes &activations = activations_.get(
        {c.tp, c.sequenceParallel, c.cp, method, c.ep, c.etp, c.microBatch,
         precision, &p == &again},
        [&] {
          return activationBytes(job, p, c, states.tensors().vocabularyRows);
        });
    frame_.made.emplace(ChoiceFrame{.job = job,
                                    .choice = c,
                                    .profile = p,
                                    .activations = activations,
                                    .states = states,
                                    .shape = shapeOf(c)});
    ChoiceFrame &made = *frame_.made;
    made.given = givenOf(c);
    if (!made.given && made.shape.kind == ScheduleKind::Synthesized)
      made.shape = standInShape(c);
    // Older specs say `1f1b` with several chunks a rank.
    if (made.shape.kind == ScheduleKind::OneFOneB && made.shape.v > 1)
      made.shape.kind = ScheduleKind::Interleaved;
    bool simple =
        made.shape.v == 1 && (made.shape.kind == ScheduleKind::OneFOneB ||
                              made.shape.kind == ScheduleKind::GPipe);
    made.defined = simple || whyNotSchedule(made.shape).empty();
    RECKON_CHECK(static_cast<int64_t>(c.layout.size()) == c.stages());
    made.chunks = chunksOf(job.model, c);
    if (job.representation == Representation::Reckon)
      made.lanes = this;
  }

  bool mirrors(const ChoiceFrame &made) const override {
    return mirrored && divides(job.model, made.choice) &&
           made.choice.recompute != Recompute::Selective;
  }

  /// Workspace of a chunk's fragments.
  LaneBytes laneOf(const ChoiceFrame &made, const ChunkLayers &chunk) override {
    const model::Choice &c = made.choice;
    const ActivationBytes &a = made.activations;
    bool some = chunk.recomputed > 0;
    bool all = chunk.recomputed == chunk.layers();
    if (!mirrored || !divides(job.model, c)) {
      uint64_t widest = std::max(chunk.dense ? a.dense.whole() : 0,
                                 chunk.moe ? a.moe.whole() : 0);
      uint64_t lane = std::max(some ? 2 * widest : 0, a.temporaries);
      uint64_t logits = chunk.last ? a.logits : 0;
      return {lane + logits, logits};
    }
    StageShape shape{.layers = std::min(chunk.layers(), kLayersThatMatter),
                     .first = chunk.first,
                     .last = chunk.last,
                     .tp = c.tp,
                     .sequenceParallel = c.sequenceParallel,
                     .microBatch = c.microBatch,
                     .precision = c.precision,
                     .recompute = Recompute::None};
    return lanes_.get(
        {shape.layers, shape.first, shape.last, c.tp, c.sequenceParallel, c.cp,
         c.microBatch, static_cast<int64_t>(shape.precision),
         (some ? 1 : 0) + (all ? 2 : 0) +
             (c.recompute == Recompute::Selective ? 4 : 0)},
        [&] {
          LaneBytes lane;
          StageModel &model = stages(c.cp);
          for (Recompute mode : {Recompute::None, Recompute::Full}) {
            if (mode == Recompute::None ? all && some : !some)
              continue;
            shape.recompute = mode;
            const FragmentMemory &fragment = model.fragments(shape);
            lane.lane = std::max(lane.lane, alignUp(fragment.laneBytes()));
            lane.logits = std::max(lane.logits, fragment.logitsBytes);
          }
          // One layer's norm outputs and product, computed again.
          if (c.recompute == Recompute::Selective)
            lane.lane += a.dense.whole() - a.dense.selective;
          lane.logits = std::min(lane.logits, lane.lane);
          return lane;
        });
  }

  /// Of a layer's values only its input's gradient outlives it, so that after
  /// a few layers the buffers of a fragment repeat in the same places: more
  /// layers need no more workspace. Tests and every compile check this.
  static constexpr int64_t kLayersThatMatter = 8;

  struct Frame {
    model::Choice choice;
    std::optional<ChoiceFrame> made;
  };
  Frame frame_;
  KeyCache<3, TensorTable> tensors_;
  KeyCache<9, StateTable> states_;
  KeyCache<9, ActivationBytes> activations_;
  KeyCache<9, LaneBytes> lanes_;
  KeyCache<1, StageModel> stages_;
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

bool Accountant::exact(const model::Choice &choice) const {
  return impl_->exact(choice);
}

StageMemory Accountant::memory(const model::Choice &choice, int64_t ppRank) {
  SumSink sink;
  accountRank(impl_->frame(choice), ppRank, sink);
  return sink.memory();
}

std::vector<MemoryItem> Accountant::items(const model::Choice &choice,
                                          int64_t ppRank) {
  ItemSink sink;
  accountRank(impl_->frame(choice), ppRank, sink);
  return std::move(sink.items);
}

PeakMemory Accountant::peak(const model::Choice &choice, uint64_t enough) {
  return Impl::peak(impl_->frame(choice), enough);
}

MemoryTimeline Accountant::timeline(const model::Choice &choice, int64_t ppRank,
                                    const TimelineDurations &durations) {
  return timelineOf(impl_->frame(choice), ppRank, durations);
}

uint64_t Accountant::lowerBound(const model::Choice &choice) {
  // The fullest rank has at least its share of the layers' states.
  const ModelShape &m = impl_->job.model;
  int64_t dense = m.isMoe() ? std::min(m.firstDense, m.layers) : m.layers;
  RankParts parts{.denseLayers = dense / choice.pp,
                  .moeLayers = (m.layers - dense) / choice.pp};
  const StateBytes &states = impl_->states(choice).rank(parts);
  return states.parameters + states.gradients + states.optimizer;
}

namespace {

/// As evenly as possible; what is left goes to the middle stages from the
/// back, then to the first, then to the last. Where embedding and head, each
/// counted as a layer, would make it even, this is that layout.
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

} // namespace

std::vector<int64_t> model::defaultLayout(const Job &job,
                                          const MemoryProfile &profile,
                                          const model::Choice &choice) {
  int64_t stages = choice.stages(), layers = job.model.layers;
  if (stages > 1 && profile.layout == 1)
    return spreadByCost(job.model, stages);
  return spreadEvenly(layers, stages);
}
