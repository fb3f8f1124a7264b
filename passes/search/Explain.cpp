//===- Explain.cpp - why nothing fits -------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Explain.h"

#include "passes/search/Conflict.h"
#include "passes/search/Outer.h"
#include "passes/search/ParallelKeys.h"
#include "runtime/base/Activity.h"

#include <bit>
#include <tuple>

using namespace reckon;
using namespace reckon::search;

std::string search::limitName(Limit limit) {
  if (limit == Limit::Memory)
    return "memory_limit";
  if (limit == Limit::HostMemory)
    return "host_memory_limit";
  if (limit == Limit::Compilable)
    return limitKey(limit);
  std::string key = limitKey(limit);
  return key.substr(key.rfind('.') + 1);
}

namespace {

/// The combination that misses least memory: among those that keep all other
/// limits when there are any, else among those that break fewest.
const Witness *leastShort(const MaskTable &table) {
  const Witness *best = nullptr;
  int fewest = kNumLimits + 1;
  for (const auto &[mask, entry] : table.entries) {
    if (!(mask & bit(Limit::Memory)))
      continue;
    int broken = std::popcount(mask);
    if (!best || broken < fewest ||
        (broken == fewest && entry.smallest.peakArena < best->peakArena)) {
      best = &entry.smallest;
      fewest = broken;
    }
  }
  return best;
}

/// The combination to show: the one that misses least of the first limit of
/// the conflict that has an amount, while it breaks fewest other limits; else
/// the fastest of those that break fewest.
const Witness *closest(const MaskTable &table, LimitMask conflict) {
  if (conflict & bit(Limit::Memory))
    return leastShort(table);
  LimitMask amount = conflict & (bit(Limit::Bubble) | bit(Limit::HostMemory));
  bool bubble = amount & bit(Limit::Bubble);
  const Witness *best = nullptr;
  std::tuple<int, double> least;
  for (const auto &[mask, entry] : table.entries) {
    if (amount && !(mask & amount))
      continue;
    const Witness &witness = bubble ? entry.leastBubble : entry.fastest;
    std::tuple key(std::popcount(mask),
                   bubble ? witness.bubble : witness.stepSeconds);
    if (best && key >= least)
      continue;
    best = &witness;
    least = key;
  }
  return best;
}

} // namespace

void search::explainInfeasible(const Spec &spec, SearchResult &result) {
  Activity activity("explanation");
  Infeasible &why = *result.infeasible;
  Evaluator evaluator(spec);
  MaskTable table = violationMasks(spec, evaluator);
  if (result.evaluated == 0)
    for (const auto &[reason, count] : result.reasons)
      why.reasons.push_back(reason);
  if (table.entries.empty()) {
    why.conflict = {"divisibility"};
    why.limits = {Limit::Divisibility};
    if (why.reasons.empty())
      for (const auto &[reason, count] : table.reasons)
        why.reasons.push_back(reason);
    why.nearest = nearestChanges(spec, table);
    return;
  }

  LimitMask given = 0;
  for (int i = 0; i < kNumLimits; ++i)
    if (limitGiven(spec, static_cast<Limit>(i)))
      given |= bit(static_cast<Limit>(i));
  LimitMask conflict = smallestHittingSet(table.minimal(), given);
  why.checked = conflictHolds(spec, evaluator, conflict);
  const Witness *shown = closest(table, conflict);
  why.closest = evaluator.candidate(shown->choice);
  for (Limit limit : limitsOf(conflict)) {
    why.limits.push_back(limit);
    why.conflict.push_back(limitName(limit));
    if (limit != Limit::Memory)
      continue;
    why.conflict.back() += " stage " + std::to_string(shown->peakRank);
    why.shortfallBytes = shown->peakArena - evaluator.limitBytes();
  }
  for (const auto &[mask, entry] : table.entries)
    if ((mask & bit(Limit::Bubble)) && !(mask & bit(Limit::Memory)))
      if (!why.leastBubble || entry.leastBubble.bubble < *why.leastBubble)
        why.leastBubble = entry.leastBubble.bubble;
  why.nearest = nearestChanges(spec, table);
}
