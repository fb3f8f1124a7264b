//===- Conflict.cpp - the smallest set of limits that reject everything ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Conflict.h"

#include "passes/search/Outer.h"

#include <algorithm>
#include <bit>

using namespace reckon;
using namespace reckon::search;

LimitMask search::smallestHittingSet(const std::vector<LimitMask> &masks,
                                     LimitMask preferred) {
  LimitMask all = 0;
  for (LimitMask mask : masks)
    all |= mask;
  LimitMask best = all;
  auto better = [&](LimitMask a, LimitMask b) {
    auto key = [&](LimitMask set) {
      return std::tuple(std::popcount(set), -std::popcount(set & preferred),
                        set);
    };
    return key(a) < key(b);
  };
  // All subsets of the limits that occur: at most 2^20, a few in practice.
  for (LimitMask set = all;; set = (set - 1) & all) {
    if (std::popcount(set) <= std::popcount(best) && better(set, best) &&
        std::all_of(masks.begin(), masks.end(),
                    [&](LimitMask mask) { return (mask & set) != 0; }))
      best = set;
    if (set == 0)
      break;
  }
  return best;
}

bool search::somethingKeeps(const Spec &spec, CostModel &cost, LimitMask keep) {
  Bounds bounds = Bounds::of(spec);
  // The given layout and count of recomputed layers are in no lifted space.
  std::vector<Spec> specs = liftedSpecs(spec);
  bool found = false;
  for (const Spec &lifted : specs) {
    Space space(lifted);
    std::vector<model::Choice> nodes;
    SpaceVisitor visitor;
    visitor.rejected = [](int64_t, const Misfit &) {};
    visitor.node = [&](const model::Choice &node, int64_t) {
      nodes.push_back(node);
    };
    space.nodes(visitor);
    LeafVisitor leaves;
    leaves.rejected = visitor.rejected;
    leaves.way = [&](const model::Choice &way, int64_t) {
      return !found && !((keep & bit(Limit::Bubble)) &&
                         cost.bubble(way) > bounds.maxBubble);
    };
    auto keeps = [&](const model::Choice &leaf) {
      if (restrictionsBroken(spec, leaf) & keep)
        return false;
      if ((keep & bit(Limit::Compilable)) && !space.refuses(leaf).empty())
        return false;
      if ((keep & bit(Limit::Representation)) && !cost.forbids(leaf).empty())
        return false;
      if ((keep & bit(Limit::HostMemory)) && bounds.hostBytes &&
          cost.hostBytes(leaf) > *bounds.hostBytes)
        return false;
      return !(keep & bit(Limit::Memory)) ||
             (cost.memoryBound(leaf) <= bounds.memoryBytes &&
              cost.peakUpTo(leaf, bounds.memoryBytes).bytes <=
                  bounds.memoryBytes);
    };
    leaves.leaf = [&](model::Choice &leaf) { found = found || keeps(leaf); };
    for (const model::Choice &node : nodes) {
      if (found)
        return true;
      if ((keep & bit(Limit::Memory)) &&
          cost.memoryBound(node) > bounds.memoryBytes)
        continue;
      space.leaves(node, leaves);
    }
  }
  return found;
}

bool search::conflictHolds(const Spec &spec, CostModel &cost,
                           LimitMask conflict) {
  if (somethingKeeps(spec, cost, conflict))
    return false;
  for (Limit limit : limitsOf(conflict))
    if (!somethingKeeps(spec, cost, conflict & ~bit(limit)))
      return false;
  return true;
}
