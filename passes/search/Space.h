//===- Space.h - every combination that a spec leaves open ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The space is walked in two steps. A *node* fixes the degrees and the
// micro-batch (tp, cp, pp, dp, ep, etp, microBatch); a *leaf* adds sequence
// parallelism, the context method, the schedule with its chunks, ZeRO and the
// recomputation. No-ops are in the space once: sequence parallelism without
// tensor parallelism, ZeRO in a group of one, a schedule without a pipeline.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SPACE_H
#define RECKON_PASSES_SEARCH_SPACE_H

#include "passes/model/KeyCache.h"
#include "passes/model/account/Accountant.h"
#include "passes/search/Limits.h"

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace reckon::search {

/// Why sizes do not divide. Kept apart from its text, since a search meets
/// millions.
struct Misfit {
  enum Kind : uint8_t {
    World,        ///< tp * cp * pp and the devices
    Heads,        ///< tp and attention heads
    KvHeads,      ///< tp and key-value heads
    Ffn,          ///< tp and the feed-forward width
    Vocab,        ///< tp and the vocabulary
    Experts,      ///< ep and the experts
    ExpertFfn,    ///< etp and an expert's width
    ExpertGroup,  ///< ep * etp and tp * cp * dp
    Sequence,     ///< 2 cp and the sequence
    Layers,       ///< pp * v above the layers
    LayoutLength, ///< pp * v and a layout that the user gave
    Batch,        ///< dp and the global batch
    MicroBatch,   ///< micro-batch and the sequences of a replica
    Tokens,       ///< tp and the tokens that sequence parallelism splits
    ContextHeads, ///< tp * cp and the heads that all_to_all exchanges
    Chunks,       ///< the schedule and virtual_pipeline
    Schedule      ///< the schedule is not defined for pp and the micro-batches
  };
  Kind kind = World;
  int64_t value = 0; ///< what does not divide
  int64_t size = 0;  ///< what it should divide

  auto operator<=>(const Misfit &) const = default;
  std::string str() const;
};

struct SpaceVisitor {
  /// A node that divides, with `leaves` combinations below it. Of the leaf
  /// keys only `zero` is set: to the largest stage allowed, so that bounds of
  /// the states hold for all.
  std::function<void(const model::Choice &node, int64_t leaves)> node;
  /// `count` combinations that do not divide.
  std::function<void(int64_t count, const Misfit &why)> rejected;
};

/// What is called below a node. A *way* fixes all but the layout, ZeRO and the
/// recomputation.
struct LeafVisitor {
  /// A way that divides, with `leaves` combinations below it; false: they are
  /// not visited. Its layout is not set. Optional.
  std::function<bool(const model::Choice &way, int64_t leaves)> way;
  std::function<void(model::Choice &leaf)> leaf;
  /// `count` combinations that do not divide.
  std::function<void(int64_t count, const Misfit &why)> rejected;
};

class Space {
public:
  explicit Space(const Spec &spec);
  Space(const Space &) = delete;
  Space &operator=(const Space &) = delete;

  /// Visits every node, in a fixed order.
  void nodes(const SpaceVisitor &visitor) const;

  /// Visits every leaf of a node that nodes() visited, in a fixed order.
  void leaves(const model::Choice &node, const LeafVisitor &visitor) const;
  void
  leaves(const model::Choice &node,
         const std::function<void(model::Choice &leaf)> &leaf,
         const std::function<void(int64_t, const Misfit &)> &rejected) const;

  /// Assignments of layers and recomputation under all leaves of a node, where
  /// the spec leaves those open; a leaf counts as one otherwise.
  double assignments(const model::Choice &node) const;

  /// Why search.space refuses the leaf; empty when it does not.
  std::string refuses(const model::Choice &leaf) const;

private:
  struct Pair {
    PipelineSchedule schedule;
    int64_t v;
  };
  /// Values of the leaf keys under a node.
  struct Leaves {
    std::vector<bool> splits;
    std::vector<ContextMethod> methods;
    std::vector<Pair> pairs;
    std::vector<int64_t> zeros;
    std::vector<Recompute> recomputes;
    mutable double assignments = -1; ///< not counted yet
    int64_t count() const {
      return static_cast<int64_t>(splits.size() * methods.size() *
                                  pairs.size() * zeros.size() *
                                  recomputes.size());
    }
  };
  const Leaves &leavesOf(const model::Choice &node) const;
  std::vector<Pair> pairs(int64_t pp) const;
  const Misfit *misfit(const model::Choice &leaf) const;
  bool fits(const model::Choice &node, Misfit &why) const;
  /// Virtual stages that a layout can fill: embedding and loss take one of
  /// their own where somebody asks for so many.
  int64_t fillableStages() const;
  const std::vector<int64_t> &layout(const model::Choice &leaf) const;

  ParallelismSpec open_;
  model::Job job_;
  const model::ModelShape &model_;
  model::MemoryProfile profile_;
  int64_t world_, batch_;
  model::Precision precision_;
  bool compilable_;
  bool openLayout_, openRecompute_; ///< to assign layer by layer
  // By (tp > 1, cp > 1, pp, group of ZeRO > 1).
  mutable std::map<std::tuple<bool, bool, int64_t, bool>, Leaves> leaves_;
  mutable std::map<int64_t, std::vector<int64_t>> layouts_;
  /// Whether a schedule is defined, by kind, pp, v and micro-batches.
  mutable model::KeyCache<4, bool> defined_;
  mutable Misfit misfit_;
};

/// The spec with every restriction of `parallelism` lifted but the
/// representation: the space in which explanations look for repairs.
Spec liftRestrictions(const Spec &spec);

/// Spaces that together hold what explanations compare: the lifted one; the
/// user's own, for what nothing tries unasked; the lifted one with the layout
/// that the user gave.
std::vector<Spec> liftedSpecs(const Spec &spec);

/// Keys of `spec.parallelism` that exclude `choice`.
LimitMask restrictionsBroken(const Spec &spec, const model::Choice &choice);

/// All divisors in rising order.
std::vector<int64_t> divisors(int64_t n);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SPACE_H
