//===- Outer.cpp - the best of all combinations, with proof ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Outer.h"

#include "runtime/base/Activity.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace reckon;
using namespace reckon::search;

/// Bubbles are quotients of small integers and limits are written in decimals.
static constexpr double kBubbleSlack = 1e-12;

Bounds Bounds::of(const Spec &spec) {
  Bounds bounds{.memoryBytes =
                    static_cast<uint64_t>(spec.constraints.memoryLimitBytes()),
                .maxBubble = *spec.constraints.maxBubble + kBubbleSlack,
                .hostBytes = {}};
  // Not given: what a node has, where that is known.
  std::optional<double> host = *spec.constraints.hostMemoryLimitGib;
  if (!host && *spec.cluster.hostMemoryGib > 0)
    host = *spec.cluster.hostMemoryGib;
  if (host)
    bounds.hostBytes = static_cast<uint64_t>(*host * 1073741824.0);
  return bounds;
}

static int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

/// The key of a step that takes `wall` seconds on average, failures included,
/// and `seconds` without any.
static int64_t wallKey(double wall, double seconds) {
  // Half of all keys, 146 years a step, is for those without progress.
  constexpr int64_t noProgress = std::numeric_limits<int64_t>::max() / 2;
  if (wall < static_cast<double>(noProgress) * 1e-9)
    return nanoseconds(wall);
  return noProgress + std::min(nanoseconds(seconds), noProgress);
}

void search::rank(Ranked &ranked, Objective objective) {
  ranked.primary = countsFailures(objective)
                       ? wallKey(ranked.wall, ranked.seconds)
                       : nanoseconds(ranked.seconds);
  ranked.secondary = static_cast<int64_t>(ranked.peak.bytes);
  if (objective == Objective::Memory)
    std::swap(ranked.primary, ranked.secondary);
}

int64_t search::leastKey(CostModel &cost, double seconds, Objective objective) {
  if (!countsFailures(objective))
    return nanoseconds(seconds);
  // Rounding must not lift it above the key of such a choice.
  return wallKey(cost.wallStepBound(seconds), seconds) - 1;
}

namespace {

/// A node in few bytes, since there may be a hundred thousand of them.
struct Node {
  Node(const model::Choice &c, int64_t leaves, int64_t bound, int64_t order)
      : bound(bound), order(order), leaves(leaves), tp(c.tp), cp(c.cp),
        pp(c.pp), dp(c.dp), ep(c.ep), etp(c.etp), microBatch(c.microBatch),
        numMicroBatches(c.numMicroBatches), zero(c.zero) {}

  model::Choice choice(Precision precision) const {
    model::Choice c;
    c.tp = tp, c.cp = cp, c.pp = pp, c.dp = dp, c.ep = ep, c.etp = etp;
    c.microBatch = microBatch, c.numMicroBatches = numMicroBatches;
    c.zero = zero;
    c.precision = precision;
    return c;
  }

  int64_t bound; ///< of Ranked::primary
  int64_t order;
  int64_t leaves;

private:
  int64_t tp, cp, pp, dp, ep, etp, microBatch, numMicroBatches, zero;
};

/// The best choices so far.
class Kept {
public:
  explicit Kept(const OuterOptions &options) : options_(options) {}

  /// Nothing with a larger primary key is kept any more.
  int64_t cutoff() const {
    return static_cast<int64_t>(best_.size()) < options_.top
               ? std::numeric_limits<int64_t>::max()
               : best_.back().primary;
  }

  void add(const Ranked &ranked) {
    if (options_.distinct) {
      auto same =
          std::find_if(best_.begin(), best_.end(), [&](const Ranked &other) {
            return degreesOf(other.choice) == degreesOf(ranked.choice);
          });
      if (same != best_.end()) {
        if (same->key() <= ranked.key())
          return;
        best_.erase(same);
      }
    }
    auto at = std::lower_bound(
        best_.begin(), best_.end(), ranked,
        [](const Ranked &a, const Ranked &b) { return a.key() < b.key(); });
    best_.insert(at, ranked);
    if (static_cast<int64_t>(best_.size()) > options_.top)
      best_.pop_back();
  }

  /// Steps that are not below this are not better than the best.
  double below() const {
    if (best_.empty())
      return std::numeric_limits<double>::infinity();
    return countsFailures(options_.objective) ? best_.front().wall
                                              : best_.front().seconds;
  }

  std::vector<Ranked> take() { return std::move(best_); }

private:
  const OuterOptions &options_;
  std::vector<Ranked> best_;
};

class OuterSearch {
public:
  OuterSearch(const Space &space, CostModel &cost, const Bounds &bounds,
              const OuterOptions &options)
      : space_(space), cost_(cost), bounds_(bounds), options_(options),
        kept_(options) {}

  OuterResult run() {
    collect();
    Activity activity("search", static_cast<int64_t>(nodes_.size()));
    bool prune =
        options_.prune && (options_.any || counts_.space > kWholeSpace);
    // The heap gives the nodes best bound first without sorting all of them.
    auto worse = [](const Node &a, const Node &b) {
      return std::pair(a.bound, a.order) > std::pair(b.bound, b.order);
    };
    std::make_heap(nodes_.begin(), nodes_.end(), worse);
    while (!nodes_.empty()) {
      std::pop_heap(nodes_.begin(), nodes_.end(), worse);
      activity.advance();
      Node node = nodes_.back();
      nodes_.pop_back();
      if (prune && (enough() || node.bound > kept_.cutoff())) {
        counts_.bound += node.leaves;
        for (const Node &rest : nodes_)
          counts_.bound += rest.leaves;
        break;
      }
      open(node, prune);
    }
    return {kept_.take(), std::move(counts_)};
  }

private:
  void reject(int64_t count, const Misfit &why) {
    counts_.divisibility += count;
    counts_.misfits[why] += count;
  }

  int64_t leastKey(double seconds) {
    return search::leastKey(cost_, seconds, options_.objective);
  }

  void collect() {
    SpaceVisitor visitor;
    visitor.rejected = [&](int64_t count, const Misfit &why) {
      counts_.space += count;
      reject(count, why);
    };
    visitor.node = [&](const model::Choice &choice, int64_t leaves) {
      counts_.space += leaves;
      if (options_.countAssignments)
        counts_.assignments += space_.assignments(choice);
      // What needs least memory is likely to fit.
      bool byBytes = options_.any || options_.objective == Objective::Memory;
      int64_t bound = byBytes ? static_cast<int64_t>(cost_.memoryBound(choice))
                              : leastKey(cost_.stepBound(choice));
      precision_ = choice.precision;
      nodes_.emplace_back(choice, leaves, bound, counts_.nodes++);
    };
    space_.nodes(visitor);
  }

  bool enough() const { return options_.any && counts_.feasible > 0; }

  /// Proved to be ranked behind the choices kept.
  bool behind(double seconds) {
    bool byTime = options_.objective != Objective::Memory;
    return enough() || (byTime && leastKey(seconds) > kept_.cutoff());
  }

  void open(const Node &node, bool prune) {
    ++counts_.nodesOpened;
    model::Choice choice = node.choice(precision_);
    if (!options_.broken && cost_.memoryBound(choice) > bounds_.memoryBytes) {
      counts_.memory += node.leaves;
      counts_.limits += node.leaves;
      return;
    }
    LeafVisitor visitor;
    if (prune)
      visitor.way = [&](const model::Choice &way, int64_t leaves) {
        if (!behind(cost_.wayBound(way)))
          return true;
        counts_.bound += leaves;
        return false;
      };
    visitor.leaf = [&](model::Choice &leaf) { visit(leaf, prune); };
    visitor.rejected = [&](int64_t count, const Misfit &why) {
      reject(count, why);
    };
    space_.leaves(choice, visitor);
  }

  void reject(LimitMask mask) {
    counts_.bubble += (mask & bit(Limit::Bubble)) != 0;
    counts_.memory += (mask & bit(Limit::Memory)) != 0;
    counts_.hostMemory += (mask & bit(Limit::HostMemory)) != 0;
    ++counts_.limits;
  }

  void visit(model::Choice &leaf, bool prune) {
    if (!space_.refuses(leaf).empty()) {
      ++counts_.compilable;
      return;
    }
    if (std::string why = cost_.forbids(leaf); !why.empty()) {
      ++counts_.representation;
      ++counts_.forbidden[why];
      return;
    }
    Ranked ranked;
    ranked.bubble = cost_.bubble(leaf);
    LimitMask mask =
        ranked.bubble > bounds_.maxBubble ? bit(Limit::Bubble) : LimitMask{0};
    if (mask && prune)
      return reject(mask);
    ranked.hostBytes = cost_.hostBytes(leaf);
    if (bounds_.hostBytes && ranked.hostBytes > *bounds_.hostBytes)
      mask |= bit(Limit::HostMemory);
    bool skips = prune && !options_.broken;
    if (skips && cost_.memoryBound(leaf) > bounds_.memoryBytes)
      mask |= bit(Limit::Memory);
    if (skips && mask)
      return reject(mask);
    if (options_.opened && !mask)
      options_.opened(leaf, kept_.below());
    // While nothing fits, what a choice costs is of no interest.
    bool first = kept_.cutoff() == std::numeric_limits<int64_t>::max();
    if (!skips || !first) {
      ranked.seconds = cost_.timedBound(leaf);
      if (prune && behind(ranked.seconds)) {
        ++counts_.bound;
        return;
      }
    }
    ranked.peak = options_.broken ? cost_.peak(leaf)
                                  : cost_.peakUpTo(leaf, bounds_.memoryBytes);
    if (ranked.peak.bytes > bounds_.memoryBytes)
      mask |= bit(Limit::Memory);
    if (mask) {
      reject(mask);
      if (options_.broken) {
        ranked.choice = leaf;
        options_.broken(ranked, mask);
      }
      return;
    }
    if (skips && first)
      ranked.seconds = cost_.timedBound(leaf);
    ++counts_.feasible;
    if (prune && !options_.any && behind(ranked.seconds))
      return;
    // What might be kept is timed as it will be shown.
    ranked.seconds = cost_.timed(leaf);
    if (!price(ranked, leaf))
      return;
    ranked.choice = leaf;
    kept_.add(ranked);
  }

  /// Sets the key of a step; whether it may be kept.
  bool price(Ranked &ranked, const model::Choice &leaf) {
    if (countsFailures(options_.objective))
      ranked.wall = cost_.wallStep(leaf, ranked.seconds);
    rank(ranked, options_.objective);
    return ranked.primary <= kept_.cutoff();
  }

  const Space &space_;
  CostModel &cost_;
  const Bounds &bounds_;
  const OuterOptions &options_;
  Kept kept_;
  Counts counts_;
  std::vector<Node> nodes_;
  Precision precision_ = Precision::Bf16; ///< of all nodes
};

} // namespace

OuterResult search::searchOuter(const Space &space, CostModel &cost,
                                const Bounds &bounds,
                                const OuterOptions &options) {
  return OuterSearch(space, cost, bounds, options).run();
}
