//===- Repairs.cpp - the nearest changes that make something fit ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A mask that is minimal under inclusion is a set of limits of which each must
// give way, and all together suffice. They are settled one after the other,
// the rest of the set lifted: the first value that solves the spec, counted
// from the one that the spec has. So each is as near as it can be: one step
// less of any of them is infeasible, whatever the others are.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Explain.h"
#include "passes/search/Outer.h"
#include "passes/search/ParallelKeys.h"
#include "runtime/base/Activity.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <tuple>

using namespace reckon;
using namespace reckon::search;

namespace {

constexpr double kGib = 1073741824.0;
constexpr int64_t kGibParts = 100;      // amounts of memory: 0.01 GiB
constexpr int64_t kBubbleParts = 10000; // bubbles: 0.0001
constexpr size_t kMostChanges = 5;
constexpr int kMostKeys = 3; // keys of one change

std::string decimal(int64_t parts, int64_t perUnit) {
  char text[64];
  std::snprintf(text, sizeof text, perUnit == kGibParts ? "%.2f" : "%.4f",
                static_cast<double>(parts) / static_cast<double>(perUnit));
  std::string shown = text;
  while (shown.back() == '0')
    shown.pop_back();
  if (shown.back() == '.')
    shown += '0';
  return shown;
}

double amount(int64_t parts, int64_t perUnit) {
  return std::strtod(decimal(parts, perUnit).c_str(), nullptr);
}

/// What `reckon plan` would find.
std::optional<Candidate> solve(const Spec &spec) {
  SearchResult result =
      search::search(spec, SearchOptions{.top = 1, .runnable = false});
  if (result.candidates.empty())
    return std::nullopt;
  return std::move(result.candidates.front());
}

/// Whether solve() finds something; quick where an even layout does.
bool solvable(const Spec &spec) {
  Evaluator evaluator(spec);
  Space space(spec);
  OuterResult found =
      searchOuter(space, evaluator, evaluator.bounds(), {.any = true});
  return !found.best.empty();
}

/// The least n in (low, high] that holds, given that it does not at low and
/// does at high, and that `likely` is probably it.
int64_t least(int64_t low, int64_t high, int64_t likely,
              const std::function<bool(int64_t)> &holds) {
  if (likely > low && likely < high) {
    if (holds(likely))
      high = likely;
    else
      low = likely;
    if (high == likely && likely - 1 > low) {
      if (!holds(likely - 1))
        return likely;
      high = likely - 1;
    }
  }
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

class Repairs {
public:
  Repairs(const Spec &spec, const MaskTable &table)
      : spec_(spec), table_(table) {
    // Reading a spec narrows these by the degrees, which may change here.
    for (Limit limit : {Limit::SequenceParallel, Limit::ContextMethod})
      if (!limitGiven(spec_, limit))
        setKey(spec_, limit, "auto");
  }

  std::vector<NearestChange> find() {
    std::vector<LimitMask> masks = table_.minimal();
    std::stable_sort(masks.begin(), masks.end(), [&](LimitMask a, LimitMask b) {
      return std::pair(std::popcount(a), weight(a)) <
             std::pair(std::popcount(b), weight(b));
    });
    bool bubble = false;
    for (LimitMask mask : masks) {
      bubble |= (mask & bit(Limit::Bubble)) != 0;
      if (found_.size() < kMostChanges && std::popcount(mask) <= kMostKeys)
        relax(mask);
    }
    if (bubble || table_.entries.empty())
      growBatch();
    addNodes();
    return std::move(found_);
  }

private:
  /// Defaults give way before what the user wrote.
  int weight(LimitMask mask) const {
    int sum = 0;
    for (Limit limit : limitsOf(mask))
      sum += !limitGiven(spec_, limit) ? 1 : isParallelKey(limit) ? 2 : 3;
    return sum;
  }

  /// What the device has beside the reserve.
  double room() const {
    return static_cast<double>(spec_.cluster.accelerator->memoryBytes()) /
               kGib -
           *spec_.cluster.memoryReserveGib;
  }

  /// Most of the limit that the hardware has, in parts.
  int64_t most(Limit limit) const {
    if (limit == Limit::Memory)
      return static_cast<int64_t>(std::floor(room() * kGibParts + 1e-9));
    if (limit == Limit::Bubble)
      return int64_t{1} << 40;
    double node = *spec_.cluster.hostMemoryGib;
    return node > 0 ? static_cast<int64_t>(std::floor(node * kGibParts + 1e-9))
                    : int64_t{1} << 40;
  }

  static int64_t partsOf(Limit limit) {
    return limit == Limit::Bubble ? kBubbleParts : kGibParts;
  }

  static void setAmount(Spec &spec, Limit limit, int64_t parts) {
    double value = amount(parts, partsOf(limit));
    if (limit == Limit::Memory)
      spec.constraints.memoryLimitGib.value = value;
    else if (limit == Limit::Bubble)
      spec.constraints.maxBubble.value = value;
    else
      spec.constraints.hostMemoryLimitGib.value = value;
  }

  /// What the spec has, rounded down.
  int64_t present(Limit limit) const {
    double value = 0;
    if (limit == Limit::Memory)
      value = *spec_.constraints.memoryLimitGib;
    else if (limit == Limit::Bubble)
      value = *spec_.constraints.maxBubble;
    else if (std::optional<double> host = *spec_.constraints.hostMemoryLimitGib)
      value = *host;
    else
      value = *spec_.cluster.hostMemoryGib;
    return static_cast<int64_t>(
        std::floor(value * static_cast<double>(partsOf(limit)) + 1e-9));
  }

  /// The amount of the witness that breaks only this limit.
  int64_t likely(Limit limit, LimitMask mask) const {
    const MaskEntry &entry = table_.entries.at(mask);
    if (limit == Limit::Bubble)
      return static_cast<int64_t>(
          std::ceil(entry.leastBubble.bubble * kBubbleParts - 1e-9));
    if (limit == Limit::Memory)
      return static_cast<int64_t>(std::ceil(
          static_cast<double>(entry.smallest.peakArena) / kGib * kGibParts));
    return static_cast<int64_t>(std::ceil(
        static_cast<double>(entry.fastest.hostBytes) / kGib * kGibParts));
  }

  static bool isAmount(Limit limit) {
    return limit == Limit::Memory || limit == Limit::Bubble ||
           limit == Limit::HostMemory;
  }

  void relax(LimitMask mask) {
    Spec changed = spec_;
    std::vector<Limit> order = limitsOf(mask);
    for (Limit limit : order) {
      if (isAmount(limit))
        setAmount(changed, limit, most(limit));
      else if (isParallelKey(limit))
        setKey(changed, limit, "auto");
      else if (limit == Limit::Representation)
        changed.parallelism.representation.value = Representation::Reckon;
      else
        changed.search.space.value = SearchSpace::All;
    }
    // Not within the hardware, or not under the other representation.
    if (!solvable(changed))
      return;
    NearestChange change;
    for (auto limit = order.rbegin(); limit != order.rend(); ++limit)
      if (!settle(changed, *limit, mask, change.settings))
        return;
    std::optional<Candidate> candidate = solve(changed);
    if (!candidate)
      return;
    std::reverse(change.settings.begin(), change.settings.end());
    change.candidate = std::move(*candidate);
    found_.push_back(std::move(change));
  }

  bool settle(Spec &changed, Limit limit, LimitMask mask,
              std::vector<Setting> &settings) {
    std::string key = limitKey(limit);
    if (limit == Limit::Representation) {
      settings.push_back({key, "reckon", ""});
      return true;
    }
    if (limit == Limit::Compilable) {
      settings.push_back({key, "all", ""});
      return true;
    }
    if (isParallelKey(limit)) {
      std::string value = nearestValue(changed, limit);
      if (value.empty())
        return false;
      setKey(changed, limit, value);
      settings.push_back({key, value, value == "auto" ? "" : "the next value"});
      return true;
    }
    int64_t parts =
        least(present(limit), most(limit), likely(limit, mask), [&](int64_t n) {
          Spec tried = changed;
          setAmount(tried, limit, n);
          return solvable(tried);
        });
    setAmount(changed, limit, parts);
    settings.push_back({key, decimal(parts, partsOf(limit)),
                        limit == Limit::Bubble ? "0.0001" : "0.01 GiB"});
    return true;
  }

  /// The value with the fewest steps from what the spec allows that solves it.
  std::string nearestValue(const Spec &changed, Limit limit) {
    std::vector<std::string> domain = keyDomain(spec_, limit);
    std::vector<std::string> allowed = keyValues(spec_, limit);
    auto steps = [&](int64_t i) {
      int64_t fewest = static_cast<int64_t>(domain.size());
      for (int64_t j = 0; j < static_cast<int64_t>(domain.size()); ++j)
        if (std::find(allowed.begin(), allowed.end(), domain[j]) !=
            allowed.end())
          fewest = std::min(fewest, std::abs(i - j));
      return fewest;
    };
    std::vector<std::pair<int64_t, int64_t>> order;
    for (int64_t i = 0; i < static_cast<int64_t>(domain.size()); ++i)
      if (steps(i) > 0)
        order.push_back({steps(i), i});
    std::sort(order.begin(), order.end());
    for (auto [distance, i] : order) {
      Spec tried = changed;
      setKey(tried, limit, domain[i]);
      if (solvable(tried))
        return domain[i];
    }
    return "";
  }

  /// More micro-batches shrink the bubble, and more sequences divide.
  void growBatch() {
    for (int64_t factor = 2; factor <= 16; ++factor) {
      Spec changed = spec_;
      changed.training.globalBatchSize.value *= factor;
      if (!solvable(changed))
        continue;
      std::optional<Candidate> candidate = solve(changed);
      if (!candidate)
        continue;
      found_.push_back(
          {{{"training.global_batch_size",
             std::to_string(*changed.training.globalBatchSize),
             std::to_string(*spec_.training.globalBatchSize) + " sequences"}},
           std::move(*candidate)});
      return;
    }
  }

  /// More machines, when the degrees leave them something to do.
  void addNodes() {
    if (!spec_.parallelism.dataParallel.isAuto)
      return;
    int64_t now = *spec_.cluster.nodes, low = now, high = 0;
    auto with = [&](int64_t nodes) {
      Spec changed = spec_;
      changed.cluster.nodes.value = nodes;
      return changed;
    };
    for (int64_t n = now + 1; n <= now + 8 && !high; ++n) {
      if (solvable(with(n)))
        high = n;
      else
        low = n;
    }
    for (int64_t factor = 2; factor <= 1024 && !high; factor *= 2) {
      if (now * factor <= low)
        continue;
      if (solvable(with(now * factor)))
        high = now * factor;
      else
        low = now * factor;
    }
    if (!high)
      return;
    while (high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      (solvable(with(middle)) ? high : low) = middle;
    }
    if (std::optional<Candidate> candidate = solve(with(high)))
      found_.push_back({{{"cluster.nodes", std::to_string(high), "one node"}},
                        std::move(*candidate)});
  }

  Spec spec_;
  const MaskTable &table_;
  std::vector<NearestChange> found_;
};

} // namespace

std::vector<NearestChange> search::nearestChanges(const Spec &spec,
                                                  const MaskTable &table) {
  Activity activity("changes that would fit");
  return Repairs(spec, table).find();
}
