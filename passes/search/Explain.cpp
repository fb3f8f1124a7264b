//===- Explain.cpp - why nothing fits, and what would ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Explain.h"

#include <cmath>
#include <cstdio>

using namespace reckon;
using namespace reckon::search;

void Rejections::add(const model::Choice &choice, const Verdict &verdict) {
  auto keep = [&](std::optional<Entry> &best, auto less) {
    if (!best || less(verdict, best->verdict))
      best = Entry{choice, verdict};
  };
  auto lessMemory = [](const Verdict &a, const Verdict &b) {
    return a.peakArena < b.peakArena;
  };
  keep(leastMemory_, lessMemory);
  if (verdict.bubbleFits)
    keep(leastMemoryBubble_, lessMemory);
  if (verdict.memoryFits)
    keep(leastBubble_, [](const Verdict &a, const Verdict &b) {
      return a.bubble < b.bubble;
    });
}

Infeasible Rejections::explain(Evaluator &evaluator) const {
  Infeasible infeasible;
  if (!leastMemory_) {
    infeasible.conflict = {"divisibility"};
    infeasible.reasons.assign(reasons_.begin(), reasons_.end());
    return infeasible;
  }
  // Memory is in the conflict unless something within max_bubble fits, which
  // would then be a solution; so it is out only when nothing has so small a
  // bubble and something fits.
  const Entry *closest = nullptr;
  if (leastMemoryBubble_)
    closest = &*leastMemoryBubble_;
  else if (leastBubble_)
    closest = &*leastBubble_;
  else
    closest = &*leastMemory_;
  if (!closest->verdict.memoryFits) {
    infeasible.conflict.push_back("memory_limit stage " +
                                  std::to_string(closest->verdict.peakStage));
    infeasible.shortfallBytes =
        closest->verdict.peakArena - evaluator.limitBytes();
  }
  if (!leastMemoryBubble_ || leastBubble_)
    infeasible.conflict.push_back("max_bubble");
  if (leastBubble_)
    infeasible.leastBubble = leastBubble_->verdict.bubble;
  infeasible.closest = evaluator.candidate(closest->choice);
  return infeasible;
}

namespace {

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string shown = text;
  while (shown.find('.') != std::string::npos &&
         (shown.back() == '0' || shown.back() == '.')) {
    bool point = shown.back() == '.';
    shown.pop_back();
    if (point)
      break;
  }
  return shown;
}

class Repairs {
public:
  explicit Repairs(const Spec &spec) : spec_(spec) {}

  std::vector<NearestChange> find(const SearchResult &failure) {
    const Infeasible &why = *failure.infeasible;
    raiseLimits(failure);
    freeKeys();
    // More micro-batches shrink the bubble; memory hardly changes.
    if (limitsBubble(why))
      growBatch();
    addNodes();
    if (found_.empty())
      freeAll();
    return std::move(found_);
  }

private:
  /// Adds the change when the changed spec has a solution.
  bool tryChange(const Spec &changed, const std::string &key,
                 const std::string &value) {
    SearchResult result = search::search(changed, 1);
    if (result.candidates.empty())
      return false;
    found_.push_back({key, value, result.candidates.front()});
    return true;
  }

  static bool limitsBubble(const Infeasible &why) {
    return !why.conflict.empty() && why.conflict.back() == "max_bubble";
  }

  void raiseLimits(const SearchResult &failure) {
    const Infeasible &why = *failure.infeasible;
    if (failure.evaluated == 0)
      return;
    Spec changed = spec_;
    if (limitsBubble(why) && why.leastBubble) {
      std::string value = decimal(std::ceil(*why.leastBubble * 1e4) / 1e4, 4);
      changed.constraints.maxBubble.value = std::stod(value);
      tryChange(changed, "constraints.max_bubble", value);
    }
    if (why.shortfallBytes == 0)
      return;
    // Only as far as the device has memory.
    const Accelerator &device = *spec_.cluster.accelerator;
    double room = static_cast<double>(device.memoryBytes()) / 1073741824.0 -
                  *spec_.cluster.memoryReserveGib;
    double need = static_cast<double>(why.closest->peakArena()) / 1073741824.0;
    need = std::ceil(need * 100) / 100;
    if (need > room)
      return;
    changed = spec_;
    changed.constraints.memoryLimitGib.value = need;
    tryChange(changed, "constraints.memory_limit_gib", decimal(need, 2));
  }

  /// Leaves one key that the user fixed to the planner.
  template <typename T, typename Show>
  void freeKey(Choice<T> ParallelismSpec::*member, std::vector<T> all,
               const char *name, Show show) {
    Choice<T> &original = spec_.parallelism.*member;
    if (original.isAuto)
      return;
    Spec changed = spec_;
    (changed.parallelism.*member).isAuto = true;
    (changed.parallelism.*member).values = std::move(all);
    if (tryChange(changed, std::string("parallelism.") + name, ""))
      found_.back().value = show(found_.back().candidate.choice);
  }

  void freeKeys() {
    using P = ParallelismSpec;
    using model::Choice;
    auto number = [](int64_t Choice::*member) {
      return [member](const Choice &c) { return std::to_string(c.*member); };
    };
    freeKey<Recompute>(&P::recompute, {Recompute::None, Recompute::Full},
                       "recompute",
                       [](const Choice &c) { return toString(c.recompute); });
    freeKey<int64_t>(&P::zeroStage, {0, 1}, "zero_stage",
                     number(&Choice::zero));
    freeKey<int64_t>(&P::microBatchSize, {}, "micro_batch_size",
                     number(&Choice::microBatch));
    freeKey<PipelineSchedule>(
        &P::pipelineSchedule,
        {PipelineSchedule::GPipe, PipelineSchedule::OneFOneB},
        "pipeline_schedule",
        [](const Choice &c) { return toString(c.schedule); });
    if (!spec_.parallelism.dataParallel.isAuto)
      return; // freeing one degree of a full product changes nothing
    if (spec_.parallelism.pipelineLayout->empty())
      freeKey<int64_t>(&P::pipelineParallel, {}, "pipeline_parallel",
                       number(&Choice::pp));
    freeKey<int64_t>(&P::tensorParallel, {}, "tensor_parallel",
                     number(&Choice::tp));
  }

  void freeAll() {
    Spec changed = spec_;
    ParallelismSpec free;
    free.zeroStage.values = {0, 1};
    free.recompute.values = {Recompute::None, Recompute::Full};
    free.pipelineSchedule.values = {PipelineSchedule::GPipe,
                                    PipelineSchedule::OneFOneB};
    changed.parallelism = free;
    tryChange(changed, "parallelism", "auto");
  }

  void growBatch() {
    Spec changed = spec_;
    for (int i = 0; i < 6; ++i) {
      changed.training.globalBatchSize.value *= 2;
      if (tryChange(changed, "training.global_batch_size",
                    std::to_string(*changed.training.globalBatchSize)))
        return;
    }
  }

  void addNodes() {
    if (!spec_.parallelism.dataParallel.isAuto)
      return;
    Spec changed = spec_;
    for (int i = 0; i < 10; ++i) {
      changed.cluster.nodes.value *= 2;
      if (tryChange(changed, "cluster.nodes",
                    std::to_string(*changed.cluster.nodes)))
        return;
    }
  }

  Spec spec_;
  std::vector<NearestChange> found_;
};

} // namespace

std::vector<NearestChange> search::nearestChanges(const Spec &spec,
                                                  const SearchResult &failure) {
  return Repairs(spec).find(failure);
}
