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
/// The step's parameter block and the metrics, as in StageModel.
constexpr uint64_t kScalarBytes = 512;

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}
std::string number(uint64_t value) { return std::to_string(value); }
std::string number(int64_t value) { return std::to_string(value); }

std::string times(double count, uint64_t bytes) {
  return number(count) + " x " + number(bytes) + " B";
}

uint64_t scaled(double factor, uint64_t bytes) {
  return static_cast<uint64_t>(
      std::llround(factor * static_cast<double>(bytes)));
}

} // namespace

namespace {

/// One rank while it is accounted for.
template <typename Sink> class RankAccount {
public:
  RankAccount(const ChoiceFrame &frame, int64_t rank, Sink &sink)
      : f_(frame), job_(frame.job), c_(frame.choice), p_(frame.profile),
        a_(frame.activations), rank_(rank), sink_(sink),
        ours_(job_.representation == Representation::Reckon),
        parts_(frame.parts(rank)), states_(frame.states.rank(parts_)) {
    for (int64_t i = 0; i < f_.shape.v; ++i)
      recomputes_ |= f_.chunks[f_.stageOf(rank, i)].recomputed > 0;
    // The spread of tokens over experts is an expectation.
    basis_ = !ours_ || parts_.moeLayers ? MemoryBasis::Calibrated
                                        : MemoryBasis::Exact;
  }

  void run() {
    states();
    activations();
    communication();
    workspace();
    sink_.add(Category::Reserve, job_.reserveBytes, MemoryBasis::Reserve,
              "driver and libraries",
              [&] { return number(job_.reserveBytes / kGib) + " GiB"; });
  }

private:
  void states() {
    auto formula = [&] {
      std::string text = number(states_.elements) + " elements";
      if (states_.expertElements)
        text += " (" + number(states_.expertElements) + " of experts)";
      text += " + " + number(states_.paddingElements) +
              " padding, zero_stage " + number(c_.zero) + " over " +
              number(f_.states.denseShards()) + " ranks";
      if (states_.expertElements)
        text += ", experts over " + number(f_.states.expertShards());
      return text;
    };
    sink_.add(Category::Parameters, states_.parameters, MemoryBasis::Exact,
              "weights", formula);
    sink_.add(Category::Gradients, states_.gradients, MemoryBasis::Exact,
              "gradients", formula);
    sink_.add(Category::Optimizer, states_.optimizer, MemoryBasis::Exact,
              "optimizer states", formula);
  }

  void activations() {
    PeakStash stash = peakStash(f_, rank_);
    sink_.add(
        Category::Activations, stash.bytes, basis_, "saved by layers", [&] {
          uint64_t kept = a_.dense.kept(c_.recompute);
          std::string text =
              number(stash.count) +
              " micro-batches of a chunk in flight; a layer of " +
              number(a_.dense.whole()) + " B keeps " + number(kept) + " B";
          if (parts_.moeLayers)
            text += ", one with experts of " + number(a_.moe.whole()) + " B " +
                    number(a_.moe.kept(c_.recompute)) + " B";
          return text;
        });
    dynamic_ += stash.bytes;
    if (ours_) {
      slots(stash.count);
      return;
    }
    uint64_t inFlight = parts_.first ? a_.embedding : 0;
    if (c_.pp > 1)
      inFlight += scaled(p_.pipelineBuffers / 2, a_.hidden);
    int64_t count = (stash.count + f_.shape.v - 1) / f_.shape.v;
    dynamic(Category::Activations, count * inFlight, MemoryBasis::Exact,
            "inputs in flight",
            [&] { return times(static_cast<double>(count), inFlight); });
    if (recomputes_) {
      uint64_t layer = std::max(parts_.denseLayers ? a_.dense.whole() : 0,
                                parts_.moeLayers ? a_.moe.whole() : 0);
      dynamic(Category::Activations, scaled(p_.liveLayers, layer),
              MemoryBasis::Calibrated, "layer being recomputed",
              [&] { return times(p_.liveLayers, layer); });
    }
    if (!parts_.last)
      return;
    dynamic(Category::Activations, a_.head, MemoryBasis::Exact, "final norm",
            [&] { return std::string("input and output"); });
    dynamic(Category::Logits, a_.logits, MemoryBasis::Calibrated, "logits",
            [&] {
              return number(p_.logits) + " B each over " +
                     number(f_.states.tensors().vocabularyRows) +
                     " rows of the vocabulary" +
                     (p_.wholeLogits > 0
                          ? ", " + number(p_.wholeLogits) + " B over all"
                          : std::string());
            });
  }

  /// Reckon's slots, by the rules of slotCounts(): one more input than
  /// stashes, since the next one arrives before a backward frees one.
  void slots(int64_t stashes) {
    int64_t most = f_.shape.m * f_.shape.v;
    int64_t inputs = std::min(most, stashes + 1);
    int64_t two = std::min<int64_t>(2, f_.shape.m);
    uint64_t input = parts_.first && f_.shape.v == 1 ? a_.tokens : a_.hidden;
    sink_.add(Category::Activations, inputs * input, MemoryBasis::Exact,
              "inputs of stages",
              [&] { return times(static_cast<double>(inputs), input); });
    if (parts_.last) {
      bool alternates = f_.given ? mostBeforeLoss() == 1
                                 : f_.shape.kind != ScheduleKind::GPipe;
      int64_t targets = parts_.first ? inputs : alternates ? 1 : two;
      sink_.add(Category::Activations, targets * a_.tokens, MemoryBasis::Exact,
                "targets",
                [&] { return times(static_cast<double>(targets), a_.tokens); });
    }
  }

  /// Micro-batches between the forward and the backward of the last stage, in
  /// an order that the choice was given.
  int64_t mostBeforeLoss() const {
    auto chunk = static_cast<size_t>(f_.given->orders.chunkOfStage.back());
    int64_t most = 0;
    for (const auto &moment :
         f_.given->inFlight[static_cast<size_t>(rank_)].maximal)
      most = std::max(most, moment[chunk].toInput);
    return most;
  }

  void communication() {
    if (c_.sequenceParallel && !ours_)
      sink_.add(Category::Communication, scaled(p_.gatheredCopies, a_.gathered),
                MemoryBasis::Calibrated, "gathered by sequence parallelism",
                [&] { return times(p_.gatheredCopies, a_.gathered); });
    if (parts_.denseLayers + parts_.moeLayers > 0)
      sink_.add(Category::Communication, a_.gatheredKeys, MemoryBasis::Exact,
                "gathered queries, keys and values", [&] {
                  return "tensor_parallel " + number(c_.tp) + " parts " +
                         number(job_.model.kvHeads) + " heads of keys";
                });
    if (c_.pp > 1) {
      bool wraps = c_.v > 1;
      bool next = rank_ + 1 < c_.pp || wraps, previous = rank_ > 0 || wraps;
      // Reckon: results and gradients to and from the next rank, gradients to
      // the previous one; inputs are among the activations. Others: one buffer
      // for each direction and neighbour.
      int64_t two = std::min<int64_t>(2, f_.shape.m);
      int64_t messages =
          ours_ ? 2 * two * next + two * previous : 2 * next + 2 * previous;
      sink_.add(Category::Communication, messages * a_.hidden,
                MemoryBasis::Exact, "pipeline messages", [&] {
                  return times(static_cast<double>(messages), a_.hidden);
                });
    }
    sink_.add(Category::Communication, a_.context, MemoryBasis::Exact,
              "buffers of context parallelism", [&] {
                return std::string("context_parallel ") + number(c_.cp) + ", " +
                       toString(c_.contextMethod);
              });
    if (parts_.moeLayers && c_.ep > 1)
      sink_.add(Category::Communication, 2 * a_.dispatch,
                MemoryBasis::Calibrated, "rows sent to experts",
                [&] { return times(2, a_.dispatch); });
    sink_.add(Category::Communication, states_.unitBytes, basis_,
              "gathered weights and whole gradients", [&] {
                return number(p_.gatheredUnits) + " layers gathered, " +
                       number(p_.unreducedUnits) + " not reduced";
              });
    if (c_.zero >= 1 && f_.states.denseShards() > 1)
      sink_.add(Category::Communication,
                static_cast<uint64_t>(std::llround(p_.bucketBytes)),
                MemoryBasis::Calibrated, "buckets",
                [&] { return number(p_.bucketBytes) + " B"; });
  }

  void workspace() {
    if (ours_) {
      LaneBytes lane = f_.lane(rank_);
      MemoryBasis basis =
          f_.lanes->mirrors(f_) ? basis_ : MemoryBasis::Calibrated;
      sink_.add(Category::Logits, lane.logits, MemoryBasis::Exact, "logits",
                [] { return std::string("in the workspace of the backward"); });
      sink_.add(Category::Workspace, lane.lane - lane.logits, basis,
                "values in a fragment",
                [] { return std::string("the largest of its fragments"); });
      uint64_t table = alignUp(
          4 * (job_.model.sequence / c_.cp) *
          (job_.model.isMla() ? job_.model.mla.rope : job_.model.headDim));
      if (job_.model.learnedPositions ||
          parts_.denseLayers + parts_.moeLayers == 0)
        table = 0;
      sink_.add(Category::Workspace, table, MemoryBasis::Exact, "rotary table",
                [] { return std::string("f32 [s, d]"); });
      sink_.add(Category::Workspace, kScalarBytes, MemoryBasis::Exact,
                "scalars and metrics", [] { return std::string("2 x 256 B"); });
      return;
    }
    if (!recomputes_ && parts_.denseLayers + parts_.moeLayers > 0)
      dynamic(Category::Workspace, a_.temporaries, basis_,
              "gradients in a layer",
              [] { return std::string("widest values of one layer"); });
    uint64_t whole = states_.parameters + states_.gradients + states_.optimizer;
    sink_.add(Category::Workspace,
              scaled(p_.allocator - 1, dynamic_) +
                  scaled(p_.stateAllocator - 1, whole),
              MemoryBasis::Calibrated, "allocator's loss", [&] {
                return times(p_.allocator - 1, dynamic_) + " + " +
                       times(p_.stateAllocator - 1, whole);
              });
    sink_.add(Category::Workspace, scaled(p_.fixedGib, 1073741824),
              MemoryBasis::Calibrated, "fixed cost",
              [&] { return number(p_.fixedGib) + " GiB"; });
  }

  /// A line that the allocator serves during the step.
  template <typename Formula>
  void dynamic(Category category, uint64_t bytes, MemoryBasis basis,
               const char *name, Formula &&formula) {
    sink_.add(category, bytes, basis, name, formula);
    dynamic_ += bytes;
  }

  const ChoiceFrame &f_;
  const Job &job_;
  const model::Choice &c_;
  const MemoryProfile &p_;
  const ActivationBytes &a_;
  int64_t rank_;
  Sink &sink_;
  bool ours_, recomputes_ = false;
  RankParts parts_;
  const StateBytes &states_;
  MemoryBasis basis_;
  uint64_t dynamic_ = 0;
};

} // namespace

template <typename Sink>
void model::accountRank(const ChoiceFrame &frame, int64_t rank, Sink &sink) {
  RankAccount<Sink>(frame, rank, sink).run();
}

template void model::accountRank(const ChoiceFrame &, int64_t, SumSink &);
template void model::accountRank(const ChoiceFrame &, int64_t, ItemSink &);
