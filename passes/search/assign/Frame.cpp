//===- Frame.cpp - a choice whose layers are still to be assigned ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/assign/Frame.h"

#include <algorithm>
#include <numeric>

using namespace reckon;
using namespace reckon::search;

static bool layersAlike(const model::ModelShape &m) {
  return !m.isMoe() || m.firstDense == 0 || m.firstDense >= m.layers;
}

Frame::Frame(const model::Choice &base, Evaluator &evaluator, uint64_t limit,
             const AssignOptions &options)
    : base_(base), trial_(base), evaluator_(evaluator), limit_(limit),
      options_(options), layers_(base.layers()),
      dense_(evaluator.job().model.isMoe() ? evaluator.job().model.firstDense
                                           : 0),
      alike_(layersAlike(evaluator.job().model)),
      perLayer_(options.freedom.recompute &&
                base.recompute != Recompute::Selective &&
                base.recomputeLayers.empty()) {
  if (perLayer_) {
    trial_.recompute = Recompute::Full;
    trial_.recomputeLayers.assign(static_cast<size_t>(base.stages()), 0);
  }
  pipelineCap_ = pipelineOf(options.beat);
  stagesOf_.resize(static_cast<size_t>(base.pp));
  model::LayerWindow window = model::layerWindow(layers_, base);
  // Layouts of several chunks are open where all dense layers of a model with
  // two kinds lie in first chunks.
  layoutOpen_ = options.freedom.layout && layers_ >= base.stages() &&
                (base.v == 1 || alike_ ||
                 window.leastEnd + (base.pp - 1) * window.least >= dense_);
  for (int64_t k = 0; k < base.stages(); ++k) {
    int64_t rank = model::rankOfStage(base.schedule, base.pp, base.v, k);
    stagesOf_[static_cast<size_t>(rank)].push_back(k);
    bool end = k == 0 || k == base.stages() - 1;
    int64_t own = base.layout[static_cast<size_t>(k)];
    least_.push_back(!layoutOpen_ ? own : end ? window.leastEnd : window.least);
    most_.push_back(layoutOpen_ ? window.most : own);
  }
  setRamps();
}

double Frame::pipelineOf(double step) const {
  // What hides behind a rank's passes hangs on how long they are, which the
  // result bounds in turn.
  const model::TimeModel &time = evaluator_.timeModel();
  model::PassShares shares = time.passShares(base_);
  double pipeline = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 4; ++round) {
    double work = pipeline / micro();
    model::AssignmentCost cost = time.assignmentCost(
        base_, shares.forward * work, shares.backward * work);
    pipeline = (step - cost.fixed) / cost.scale;
  }
  return pipeline;
}

double Frame::quickestStage(int64_t stage, int64_t count,
                            int64_t before) const {
  bool full = !perLayer_ && base_.recompute == Recompute::Full &&
              base_.recomputeLayers.empty();
  model::StageTime time = evaluator_.timeModel().stage(base_, stage, before,
                                                       count, full ? count : 0);
  return time.forward + time.backward();
}

/// Of orders with several chunks: the first chunks of the ranks before and, of
/// breadth-first ones, the last chunks of the ranks after, with as few layers
/// as may be.
void Frame::setRamps() {
  ramps_.assign(static_cast<size_t>(ranks()), 0);
  if (chunks() == 1 || (base_.schedule != PipelineSchedule::Interleaved &&
                        base_.schedule != PipelineSchedule::Bfs))
    return;
  auto quickest = [&](int64_t stage) {
    int64_t count = least(stage);
    return std::min(quickestStage(stage, count, 0),
                    quickestStage(stage, count, layers_));
  };
  double before = 0, after = 0;
  for (int64_t r = 0; r < ranks(); ++r) {
    ramps_[static_cast<size_t>(r)] = before;
    before += quickest(stagesOf(r).front());
  }
  if (base_.schedule == PipelineSchedule::Interleaved)
    return;
  for (int64_t r = ranks() - 1; r >= 0; --r) {
    ramps_[static_cast<size_t>(r)] += after;
    after += quickest(stagesOf(r).back());
  }
}

RankOption Frame::option(int64_t rank, const std::vector<int64_t> &counts,
                         int64_t before) {
  std::vector<int64_t> places{before};
  const std::vector<int64_t> &own = stagesOf(rank);
  if (!layoutOpen_) {
    for (size_t i = 0; i < own.size(); ++i) {
      auto first = base_.layout.begin();
      places.resize(i + 1);
      places[i] = std::accumulate(first, first + own[i], int64_t{0});
    }
    return option(rank, counts, places);
  }
  // Anywhere behind the dense layers is the same, as long as what is left goes
  // into the stages that are left.
  int64_t left = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (size_t i = 1; i < own.size(); ++i) {
    left -= counts[i - 1];
    int64_t place = std::max(
        {dense_, places.back() + counts[i - 1], own[i] * layers_ / stages()});
    places.push_back(std::min(place, layers_ - left));
  }
  return option(rank, counts, places);
}

bool Frame::fits(int64_t rank, const std::vector<int64_t> &counts,
                 const std::vector<int64_t> &before,
                 const std::vector<int64_t> &full) {
  const std::vector<int64_t> &own = stagesOf(rank);
  auto spread = [&](int64_t from, int64_t to, int64_t layers) {
    int64_t stages = to - from;
    for (int64_t i = 0; i < stages; ++i)
      trial_.layout[static_cast<size_t>(from + i)] =
          layers / stages + (i < layers % stages ? 1 : 0);
  };
  int64_t stage = 0, placed = 0;
  for (size_t i = 0; i < own.size(); ++i) {
    // How the others share the rest does not matter to the rank.
    spread(stage, own[i], std::max<int64_t>(0, before[i] - placed));
    auto k = static_cast<size_t>(own[i]);
    trial_.layout[k] = counts[i];
    if (perLayer_)
      trial_.recomputeLayers[k] = full[i];
    stage = own[i] + 1;
    placed = before[i] + counts[i];
  }
  spread(stage, stages(), std::max<int64_t>(0, layers_ - placed));
  return evaluator_.memory(trial_, rank) <= limit_;
}

RankOption Frame::option(int64_t rank, const std::vector<int64_t> &counts,
                         const std::vector<int64_t> &before) {
  const std::vector<int64_t> &own = stagesOf(rank);
  const model::TimeModel &time = evaluator_.timeModel();
  RankOption option{.layers = counts, .full = counts};
  option.passes.resize(counts.size());
  if (perLayer_)
    option.full.assign(counts.size(), 0);
  else if (base_.recompute != Recompute::Full)
    option.full.assign(counts.size(), 0);
  else if (!base_.recomputeLayers.empty())
    for (size_t i = 0; i < own.size(); ++i)
      option.full[i] = std::min(
          counts[i], base_.recomputeLayers[static_cast<size_t>(own[i])]);
  int64_t most = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    most += counts[i];
    option.heavy += counts[i];
    if (!alike_)
      option.heavy -= std::clamp<int64_t>(dense_ - before[i], 0, counts[i]);
  }

  auto recompute = [&](int64_t layers) {
    for (size_t i = 0; perLayer_ && i < counts.size(); ++i) {
      option.full[i] = std::min(counts[i], layers);
      layers -= option.full[i];
    }
  };
  auto price = [&] {
    option.forward = option.backward = 0;
    model::StageTime all;
    for (size_t i = 0; i < own.size(); ++i) {
      model::StageTime one =
          time.stage(trial_, own[i], before[i], counts[i], option.full[i]);
      all.forward += one.forward;
      all.inputGrad += one.inputGrad;
      all.weightGrad += one.weightGrad;
      option.passes[i] = {one.forward, one.backward(), one.weightGrad};
    }
    option.forward = all.forward;
    option.backward = all.backward();
    option.piece = model::rampPiece(base_.schedule, all.forward, all.inputGrad,
                                    all.weightGrad);
    return option.work() <= rankCap();
  };
  auto check = [&](int64_t layers) {
    recompute(layers);
    return fits(rank, counts, before, option.full);
  };
  if (!price())
    return option; // too slow already
  option.fits = check(0);
  if (option.fits || !perLayer_)
    return option;
  // The most that the cap leaves time for; then the least that fits. Past the
  // first recomputed layer, which needs room of its own, each one saves.
  int64_t low = 1, high = most;
  recompute(high);
  if (!price()) {
    int64_t slow = high;
    high = 0;
    while (slow - high > 1) {
      int64_t middle = (slow + high) / 2;
      recompute(middle);
      (price() ? high : slow) = middle;
    }
  }
  if (high == 0 || !check(high))
    return option;
  while (low < high) {
    int64_t middle = (low + high) / 2;
    if (check(middle))
      high = middle;
    else
      low = middle + 1;
  }
  recompute(high);
  price();
  option.fits = true;
  return option;
}

double Frame::ends(const RankOption &first, const RankOption &last) const {
  if (chunks() == 1 || base_.schedule != PipelineSchedule::Interleaved)
    return 0;
  // No rank works longer than the cap.
  double ring = model::ringOfEnds(ranks(), first.passes, last.passes);
  double turns = micro() - 2 * static_cast<double>(ranks());
  return std::max(0.0, turns) * std::max(0.0, ring - rankCap());
}

double Frame::quickest(int64_t rank, const std::vector<int64_t> &counts) const {
  // Dense layers come first: as many of them as there are, or none.
  double early = 0, late = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t stage = stagesOf(rank)[i];
    early += quickestStage(stage, counts[i], 0);
    late += quickestStage(stage, counts[i], layers_);
  }
  return std::min(early, late);
}

model::Choice Frame::choice(const std::vector<int64_t> &layout,
                            const std::vector<int64_t> &full) const {
  model::Choice choice = base_;
  choice.layout = layout;
  if (!perLayer_)
    return choice;
  // Lists that say what a mode says are written as the mode.
  auto none = [](int64_t n) { return n == 0; };
  choice.recompute = Recompute::Full;
  choice.recomputeLayers = full;
  if (full == layout) {
    choice.recomputeLayers.clear();
  } else if (std::all_of(full.begin(), full.end(), none)) {
    choice.recompute = Recompute::None;
    choice.recomputeLayers.clear();
  }
  return choice;
}

double Frame::step(const model::Choice &choice) const {
  constexpr double never = std::numeric_limits<double>::infinity();
  // Memory is asked again, of the whole choice.
  if (evaluator_.timedBound(choice) >= options_.beat ||
      evaluator_.peak(choice).bytes > limit_)
    return never;
  double seconds = evaluator_.timed(choice);
  return seconds < options_.beat ? seconds : never;
}

double Frame::bound(double pipeline, double mostForward, double mostBackward,
                    int64_t held) const {
  model::AssignmentCost cost = evaluator_.timeModel().assignmentCost(
      base_, mostForward, mostBackward, held);
  return std::min(options_.beat,
                  (cost.scale * pipeline + cost.fixed) * (1 - 1e-9));
}
