//===- Space.cpp - every combination that a spec leaves open --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Space.h"

#include "passes/model/Schedule.h"
#include "passes/model/schedule/Given.h"
#include "passes/search/assign/Assign.h"
#include "passes/search/assign/Count.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

std::vector<int64_t> search::divisors(int64_t n) {
  std::vector<int64_t> small, large;
  for (int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0) {
      small.push_back(d);
      if (d != n / d)
        large.push_back(n / d);
    }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

namespace {

/// The values that a key allows, or the divisors of `n` up to `most`; rising.
std::vector<int64_t> degrees(const reckon::Choice<int64_t> &key, int64_t n,
                             int64_t most) {
  std::vector<int64_t> values = key.values;
  if (key.isAuto && values.empty()) {
    values = divisors(n);
    values.erase(std::upper_bound(values.begin(), values.end(), most),
                 values.end());
  }
  std::sort(values.begin(), values.end());
  return values;
}

template <typename T>
std::vector<T> allowed(const reckon::Choice<T> &key,
                       std::initializer_list<T> all) {
  std::vector<T> values;
  for (const T &value : all)
    if (key.allows(value))
      values.push_back(value);
  return values;
}

/// Tokens of a rank below which more context parallelism is not tried.
constexpr int64_t kLeastContextTokens = 512;

bool needsTwoChunks(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::ZbV ||
         schedule == PipelineSchedule::DualPipeV;
}

bool manyChunks(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::Interleaved ||
         schedule == PipelineSchedule::Bfs;
}

} // namespace

Space::Space(const Spec &spec)
    : open_(spec.parallelism), job_(model::makeJob(spec)), model_(job_.model),
      profile_(model::memoryProfile(job_.profile, job_.representation)),
      world_(spec.cluster.worldSize()), batch_(*spec.training.globalBatchSize),
      precision_(*spec.training.precision),
      compilable_(*spec.search.space == SearchSpace::Compilable),
      openLayout_(assignFreedom(spec).layout),
      openRecompute_(assignFreedom(spec).recompute) {}

const std::vector<int64_t> &Space::layout(const model::Choice &leaf) const {
  if (!open_.pipelineLayout->empty())
    return *open_.pipelineLayout;
  auto [entry, added] = layouts_.try_emplace(leaf.stages());
  if (added)
    entry->second = model::defaultLayout(job_, profile_, leaf);
  return entry->second;
}

std::vector<Space::Pair> Space::pairs(int64_t pp) const {
  using enum PipelineSchedule;
  std::vector<PipelineSchedule> schedules =
      compilable_
          ? allowed(open_.pipelineSchedule, {OneFOneB, GPipe})
          : allowed(open_.pipelineSchedule, {OneFOneB, GPipe, Interleaved, Bfs,
                                             ZbH1, ZbH2, ZbV, DualPipeV});
  // Those that are only taken when asked for, or that search.space refuses.
  if (!open_.pipelineSchedule.isAuto)
    schedules = open_.pipelineSchedule.values;
  const reckon::Choice<int64_t> &chunks = open_.virtualPipeline;
  // Without a pipeline all schedules are the same loop.
  if (pp == 1) {
    if (schedules.empty() || !chunks.allows(1))
      return {};
    return {{schedules.front(), 1}};
  }
  std::vector<Pair> pairs;
  for (PipelineSchedule schedule : schedules) {
    if (schedule == Csv) {
      if (job_.schedule && chunks.allows(job_.schedule->orders.v))
        pairs.push_back({schedule, job_.schedule->orders.v});
      continue;
    }
    if (!manyChunks(schedule)) {
      int64_t v = needsTwoChunks(schedule) ? 2 : 1;
      if (chunks.allows(v) && (!chunks.isAuto || pp * v <= fillableStages()))
        pairs.push_back({schedule, v});
      continue;
    }
    if (chunks.isAuto && chunks.values.empty()) {
      int64_t most = fillableStages() / pp;
      if (!open_.pipelineLayout->empty())
        most = static_cast<int64_t>(open_.pipelineLayout->size()) / pp;
      for (int64_t v = 2; v <= most; ++v)
        pairs.push_back({schedule, v});
      continue;
    }
    for (int64_t v : chunks.values)
      if (v > 1 || !open_.pipelineSchedule.isAuto)
        pairs.push_back({schedule, v});
  }
  return pairs;
}

const Space::Leaves &Space::leavesOf(const model::Choice &node) const {
  bool sharded = node.dp * node.cp > 1;
  auto [entry, added] =
      leaves_.try_emplace({node.tp > 1, node.cp > 1, node.pp, sharded});
  Leaves &leaves = entry->second;
  if (!added)
    return leaves;
  leaves.splits = node.tp > 1
                      ? allowed<bool>(open_.sequenceParallel, {true, false})
                      : std::vector<bool>{false};
  using enum ContextMethod;
  leaves.methods = {None};
  if (node.cp > 1) {
    leaves.methods =
        allowed(open_.contextParallelMethod, {Ring, AllGather, AllToAll});
    if (leaves.methods.empty()) // `none` fixed beside a degree above one
      leaves.methods = {Ring};
  }
  leaves.pairs = pairs(node.pp);
  const reckon::Choice<int64_t> &zero = open_.zeroStage;
  if (!zero.isAuto)
    leaves.zeros = zero.values;
  else if (compilable_)
    leaves.zeros = allowed<int64_t>(zero, {0, 1});
  else // Sharded gradients or weights under a pipeline only when asked for:
       // every micro-batch would communicate them again.
    leaves.zeros = node.pp > 1 ? allowed<int64_t>(zero, {0, 1})
                               : allowed<int64_t>(zero, {0, 1, 2, 3});
  std::sort(leaves.zeros.begin(), leaves.zeros.end());
  // Sharding over one rank is the same as not sharding.
  if (!sharded && leaves.zeros.size() > 1)
    leaves.zeros = {leaves.zeros.front()};
  if (open_.recompute.isAuto && compilable_)
    leaves.recomputes =
        allowed(open_.recompute, {Recompute::None, Recompute::Full});
  else
    leaves.recomputes =
        allowed(open_.recompute,
                {Recompute::None, Recompute::Selective, Recompute::Full});
  return leaves;
}

int64_t Space::fillableStages() const {
  bool asked = !open_.pipelineParallel.isAuto || !open_.virtualPipeline.isAuto;
  return model_.layers + (asked && !compilable_ ? 2 : 0);
}

bool Space::fits(const model::Choice &node, Misfit &why) const {
  auto divides = [&](int64_t size, int64_t value, Misfit::Kind kind) {
    if (size % value == 0)
      return true;
    why = {kind, value, size};
    return false;
  };
  if (!divides(model_.heads, node.tp, Misfit::Heads))
    return false;
  // Copied key-value heads are for those who ask for them.
  bool copied = !compilable_ && !open_.tensorParallel.isAuto &&
                node.tp % model_.kvHeads == 0;
  if (!model_.isMla() && !copied &&
      !divides(model_.kvHeads, node.tp, Misfit::KvHeads))
    return false;
  if ((!model_.isMoe() || model_.firstDense > 0) &&
      !divides(model_.ffn, node.tp, Misfit::Ffn))
    return false;
  // Other frameworks pad the vocabulary.
  if (compilable_ && !divides(model_.vocab, node.tp, Misfit::Vocab))
    return false;
  if (node.cp > 1 && !divides(model_.sequence, 2 * node.cp, Misfit::Sequence))
    return false;
  if (open_.pipelineLayout->empty() && node.pp > fillableStages()) {
    why = {Misfit::Layers, node.pp, fillableStages()};
    return false;
  }
  if (!divides(batch_, node.dp, Misfit::Batch))
    return false;
  return true;
}

double Space::assignments(const model::Choice &node) const {
  const Leaves &leaves = leavesOf(node);
  if (leaves.assignments >= 0)
    return leaves.assignments;
  auto has = [&](Recompute mode) {
    return std::find(leaves.recomputes.begin(), leaves.recomputes.end(),
                     mode) != leaves.recomputes.end();
  };
  double sum = 0;
  for (Pair pair : leaves.pairs) {
    bool ordered = pair.schedule == PipelineSchedule::Csv ||
                   pair.schedule == PipelineSchedule::Synthesized;
    if (ordered || !openLayout_) {
      sum += static_cast<double>(leaves.recomputes.size());
      continue;
    }
    double layouts = countAssignments(model_.layers, node.pp, pair.v, false);
    if (!openRecompute_)
      sum += layouts * static_cast<double>(leaves.recomputes.size());
    else // one by one, from none to full
      sum += countAssignments(model_.layers, node.pp, pair.v, true) +
             (has(Recompute::Selective) ? layouts : 0);
  }
  leaves.assignments =
      sum * static_cast<double>(leaves.splits.size() * leaves.methods.size() *
                                leaves.zeros.size());
  return leaves.assignments;
}

const Misfit *Space::misfit(const model::Choice &leaf) const {
  auto no = [&](Misfit::Kind kind, int64_t value, int64_t size) {
    misfit_ = {kind, value, size};
    return &misfit_;
  };
  int64_t tokens = leaf.microBatch * model_.sequence / leaf.cp;
  if (leaf.sequenceParallel && tokens % leaf.tp)
    return no(Misfit::Tokens, leaf.tp, tokens);
  if (leaf.contextMethod == ContextMethod::AllToAll &&
      model_.heads % (leaf.tp * leaf.cp))
    return no(Misfit::ContextHeads, leaf.tp * leaf.cp, model_.heads);
  if (leaf.pp == 1)
    return nullptr;
  if (!open_.pipelineLayout->empty()) {
    auto length = static_cast<int64_t>(open_.pipelineLayout->size());
    if (leaf.pp * leaf.v != length)
      return no(Misfit::LayoutLength, leaf.pp * leaf.v, length);
  } else if (leaf.pp * leaf.v > fillableStages()) {
    return no(Misfit::Layers, leaf.pp * leaf.v, fillableStages());
  }
  if (leaf.schedule == PipelineSchedule::Csv)
    return model::givenOf(leaf)
               ? nullptr
               : no(Misfit::Schedule, leaf.numMicroBatches, leaf.pp);
  if (leaf.schedule == PipelineSchedule::Synthesized)
    return nullptr;
  bool defined = defined_.get(
      {static_cast<int64_t>(leaf.schedule), leaf.pp, leaf.v,
       leaf.numMicroBatches},
      [&] { return model::whyNotSchedule(model::shapeOf(leaf)).empty(); });
  if (!defined)
    return no(Misfit::Schedule, leaf.numMicroBatches, leaf.pp);
  return nullptr;
}

void Space::nodes(const SpaceVisitor &visitor) const {
  model::Choice node;
  node.precision = precision_;
  Misfit why;
  auto give = [&](int64_t v) { return std::max<int64_t>(v, 1); };
  int64_t mostContext =
      std::max<int64_t>(1, model_.sequence / kLeastContextTokens);
  bool experts = model_.isMoe();
  std::vector<int64_t> contexts =
      compilable_ && open_.contextParallel.isAuto
          ? std::vector<int64_t>{1}
          : degrees(open_.contextParallel, world_, mostContext);
  // One chunk a rank at least, or the length of the layout given.
  int64_t mostStages = std::max(
      model_.layers, static_cast<int64_t>(open_.pipelineLayout->size()));
  for (int64_t tp : degrees(open_.tensorParallel, world_, model_.heads))
    for (int64_t cp : contexts)
      for (int64_t pp : degrees(open_.pipelineParallel,
                                give(world_ / give(tp * cp)), mostStages)) {
        node.tp = tp, node.cp = cp, node.pp = pp;
        node.ep = node.etp = node.microBatch = node.dp = 1;
        if (world_ % (tp * cp * pp)) {
          visitor.rejected(leavesOf(node).count(),
                           {Misfit::World, tp * cp * pp, world_});
          continue;
        }
        node.dp = world_ / (tp * cp * pp);
        if (!open_.dataParallel.allows(node.dp))
          continue;
        int64_t leaves = leavesOf(node).count();
        node.zero = leaves ? leavesOf(node).zeros.back() : 0;
        if (leaves == 0) { // nothing that was asked for goes with so many
          visitor.rejected(1, {Misfit::Chunks, pp, 0});
          continue;
        }
        if (!fits(node, why)) {
          visitor.rejected(leaves, why);
          continue;
        }
        int64_t group = tp * cp * node.dp;
        bool one = !experts || (compilable_ && open_.expertParallel.isAuto);
        auto expertDegrees =
            one ? std::vector<int64_t>{1}
                : degrees(open_.expertParallel, std::gcd(model_.experts, group),
                          model_.experts);
        auto tensorDegrees = one ? std::vector<int64_t>{1}
                                 : degrees(open_.expertTensorParallel,
                                           std::gcd(tp, model_.expertFfn), tp);
        int64_t sequences = batch_ / node.dp;
        std::vector<int64_t> sizes =
            degrees(open_.microBatchSize, sequences, sequences);
        for (int64_t ep : expertDegrees)
          for (int64_t etp : tensorDegrees) {
            node.ep = ep, node.etp = etp;
            if (experts && model_.experts % ep) {
              visitor.rejected(leaves, {Misfit::Experts, ep, model_.experts});
              continue;
            }
            if (experts && model_.expertFfn % etp) {
              visitor.rejected(leaves,
                               {Misfit::ExpertFfn, etp, model_.expertFfn});
              continue;
            }
            if (group % (ep * etp)) {
              visitor.rejected(leaves, {Misfit::ExpertGroup, ep * etp, group});
              continue;
            }
            for (int64_t size : sizes) {
              if (sequences % size) {
                visitor.rejected(leaves, {Misfit::MicroBatch, size, sequences});
                continue;
              }
              node.microBatch = size;
              node.numMicroBatches = sequences / size;
              visitor.node(node, leaves);
            }
          }
      }
}

void Space::leaves(
    const model::Choice &node,
    const std::function<void(model::Choice &leaf)> &leaf,
    const std::function<void(int64_t, const Misfit &)> &rejected) const {
  leaves(node, {.way = {}, .leaf = leaf, .rejected = rejected});
}

void Space::leaves(const model::Choice &node,
                   const LeafVisitor &visitor) const {
  const Leaves &leaves = leavesOf(node);
  auto below =
      static_cast<int64_t>(leaves.zeros.size() * leaves.recomputes.size());
  model::Choice leaf = node;
  for (bool split : leaves.splits)
    for (ContextMethod method : leaves.methods)
      for (Pair pair : leaves.pairs) {
        leaf.sequenceParallel = split;
        leaf.contextMethod = method;
        leaf.schedule = pair.schedule;
        leaf.v = pair.v;
        leaf.given = leaf.pp > 1 && pair.schedule == PipelineSchedule::Csv
                         ? job_.schedule
                         : nullptr;
        if (const Misfit *why = misfit(leaf)) {
          visitor.rejected(below, *why);
          continue;
        }
        if (visitor.way && !visitor.way(leaf, below))
          continue;
        leaf.layout = layout(leaf);
        leaf.recomputeLayers.clear();
        if (open_.recomputeLayers)
          for (int64_t layers : leaf.layout)
            leaf.recomputeLayers.push_back(
                std::min(layers, *open_.recomputeLayers));
        for (int64_t zero : leaves.zeros)
          for (Recompute recompute : leaves.recomputes) {
            leaf.zero = zero;
            leaf.recompute = recompute;
            visitor.leaf(leaf);
          }
      }
}

std::string Space::refuses(const model::Choice &leaf) const {
  return compilable_ ? model::whyNotCompilable(leaf) : std::string();
}
