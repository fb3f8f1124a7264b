//===- Masks.cpp - which sets of limits every combination breaks ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Outer.h"

#include "runtime/base/Activity.h"

#include <algorithm>
#include <bit>

using namespace reckon;
using namespace reckon::search;

namespace {

class MaskSearch {
public:
  MaskSearch(const Spec &spec, CostModel &cost)
      : spec_(spec), cost_(cost), bounds_(Bounds::of(spec)) {}

  MaskTable run() {
    for (const Spec &lifted : liftedSpecs(spec_)) {
      Space space(lifted);
      space_ = &space;
      walk();
      space_ = nullptr;
    }
    return std::move(table_);
  }

private:
  void walk() {
    struct Node {
      model::Choice choice;
      int64_t leaves;
      LimitMask broken; ///< restrictions on degrees
    };
    std::vector<Node> nodes;
    SpaceVisitor visitor;
    auto misfit = [&](int64_t count, const Misfit &why) {
      table_.indivisible += count;
      misfits_[why] += count;
    };
    visitor.rejected = [&](int64_t count, const Misfit &why) {
      table_.space += count;
      misfit(count, why);
    };
    visitor.node = [&](const model::Choice &choice, int64_t leaves) {
      table_.space += leaves;
      nodes.push_back(
          {choice, leaves, restrictionsBroken(spec_, choice) & kNodeLimits});
    };
    space_->nodes(visitor);
    // Few broken restrictions first: their masks then spare the others.
    std::stable_sort(nodes.begin(), nodes.end(),
                     [](const Node &a, const Node &b) {
                       return std::popcount(a.broken) < std::popcount(b.broken);
                     });
    LeafVisitor leaves;
    leaves.rejected = misfit;
    leaves.way = [&](const model::Choice &way, int64_t count) {
      if (!hopeless(way))
        return true;
      table_.dominated += count;
      return false;
    };
    leaves.leaf = [&](model::Choice &leaf) { visit(leaf); };
    Activity activity("broken limits", static_cast<int64_t>(nodes.size()));
    for (const Node &node : nodes) {
      activity.advance();
      if (dominated(node.broken)) {
        table_.dominated += node.leaves;
        continue;
      }
      space_->leaves(node.choice, leaves);
    }
    for (const auto &[why, count] : misfits_)
      table_.reasons[why.str()] += count;
    misfits_.clear();
  }

  /// The restrictions that are already decided at a node.
  static constexpr LimitMask kNodeLimits =
      bit(Limit::TensorParallel) | bit(Limit::ContextParallel) |
      bit(Limit::PipelineParallel) | bit(Limit::ExpertParallel) |
      bit(Limit::ExpertTensorParallel) | bit(Limit::DataParallel) |
      bit(Limit::MicroBatch);

  /// The restrictions that only a leaf decides.
  static constexpr LimitMask kLeafLimits =
      bit(Limit::ZeroStage) | bit(Limit::Recompute) | bit(Limit::Layout);

  /// Whether some mask present is a proper subset.
  bool dominated(LimitMask mask) const {
    return std::any_of(
        table_.entries.begin(), table_.entries.end(), [&](const auto &entry) {
          return entry.first != mask && (entry.first & mask) == entry.first;
        });
  }

  /// What breaks every leaf of the way is dominated already.
  bool hopeless(const model::Choice &way) {
    LimitMask mask = restrictionsBroken(spec_, way) & ~kLeafLimits;
    if (dominated(mask))
      return true;
    wayBubble_ = cost_.bubble(way);
    waySeconds_ = -1;
    if (wayBubble_ > bounds_.maxBubble)
      mask |= bit(Limit::Bubble);
    return dominated(mask);
  }

  void visit(model::Choice &leaf) {
    LimitMask mask = restrictionsBroken(spec_, leaf);
    if (!space_->refuses(leaf).empty())
      mask |= bit(Limit::Compilable);
    if (dominated(mask)) {
      ++table_.dominated;
      return;
    }
    if (!cost_.forbids(leaf).empty())
      mask |= bit(Limit::Representation);
    Witness witness;
    witness.bubble = wayBubble_;
    if (witness.bubble > bounds_.maxBubble)
      mask |= bit(Limit::Bubble);
    witness.hostBytes = cost_.hostBytes(leaf);
    if (bounds_.hostBytes && witness.hostBytes > *bounds_.hostBytes)
      mask |= bit(Limit::HostMemory);
    uint64_t bytes = cost_.memoryBound(leaf);
    if (bytes > bounds_.memoryBytes) {
      mask |= bit(Limit::Memory);
      if (!dominated(mask) && !improves(mask, leaf, witness.bubble, bytes)) {
        ++table_.entries.at(mask).count;
        return;
      }
    }
    if (dominated(mask)) {
      ++table_.dominated;
      return;
    }
    Peak peak = cost_.peak(leaf);
    witness.peakArena = peak.bytes;
    witness.peakRank = peak.rank;
    if (peak.bytes > bounds_.memoryBytes)
      mask |= bit(Limit::Memory);
    if (dominated(mask)) {
      ++table_.dominated;
      return;
    }
    witness.stepSeconds = cost_.step(leaf);
    MaskEntry &entry = table_.entries[mask];
    bool first = entry.count++ == 0;
    auto keep = [&](Witness &best, bool better) {
      if (!first && !better)
        return;
      best = witness;
      best.choice = leaf;
    };
    keep(entry.fastest, witness.stepSeconds < entry.fastest.stepSeconds);
    keep(entry.smallest, witness.peakArena < entry.smallest.peakArena);
    keep(entry.leastBubble, witness.bubble < entry.leastBubble.bubble);
  }

  /// Whether the bounds leave it open that the leaf is a better witness of its
  /// mask than those known.
  bool improves(LimitMask mask, const model::Choice &leaf, double bubble,
                uint64_t bytes) {
    auto known = table_.entries.find(mask);
    if (known == table_.entries.end())
      return true;
    const MaskEntry &entry = known->second;
    if (bytes < entry.smallest.peakArena || bubble < entry.leastBubble.bubble)
      return true;
    if (waySeconds_ < 0)
      waySeconds_ = cost_.wayBound(leaf);
    return waySeconds_ < entry.fastest.stepSeconds;
  }

  const Spec &spec_;
  const Space *space_ = nullptr;
  CostModel &cost_;
  Bounds bounds_;
  MaskTable table_;
  std::map<Misfit, int64_t> misfits_;
  /// Of the way that is being visited; the bound once it is asked for.
  double wayBubble_ = 0, waySeconds_ = -1;
};

} // namespace

MaskTable search::violationMasks(const Spec &spec, CostModel &cost) {
  return MaskSearch(spec, cost).run();
}
