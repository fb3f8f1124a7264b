//===- Neighbours.cpp - what one step away from the choice would cost -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Neighbours.h"

#include "passes/search/Evaluate.h"
#include "passes/search/ParallelKeys.h"
#include "passes/search/Space.h"
#include "runtime/base/Activity.h"

#include <algorithm>
#include <cstdio>

using namespace reckon;
using namespace reckon::search;

namespace {

constexpr double kGib = 1073741824.0;

class Around {
public:
  Around(const Spec &spec, const Candidate &candidate)
      : spec_(spec), choice_(candidate.choice), evaluator_(spec),
        fixed_(liftRestrictions(spec)) {
    for (Limit key :
         {Limit::TensorParallel, Limit::SequenceParallel,
          Limit::ContextParallel, Limit::ContextMethod, Limit::PipelineParallel,
          Limit::VirtualPipeline, Limit::Schedule, Limit::ExpertParallel,
          Limit::ExpertTensorParallel, Limit::ZeroStage, Limit::MicroBatch,
          Limit::Recompute})
      if (!(key == Limit::ContextMethod && choice_.cp == 1))
        setKey(fixed_, key, keyValue(choice_, key));
    // The choice as its neighbours are: evenly laid out.
    Neighbour self;
    evaluate(fixed_, self);
    base_ = self.impossible.empty()
                ? self
                : Neighbour{.stepSeconds = candidate.time.step,
                            .peakArena = candidate.peakArena()};
  }

  std::vector<Neighbour> all() {
    for (Limit key : {Limit::TensorParallel, Limit::ContextParallel,
                      Limit::PipelineParallel, Limit::VirtualPipeline,
                      Limit::ExpertParallel, Limit::ExpertTensorParallel,
                      Limit::MicroBatch})
      degrees(key);
    for (Limit key : {Limit::SequenceParallel, Limit::ZeroStage,
                      Limit::Recompute, Limit::Schedule})
      words(key);
    return std::move(found_);
  }

private:
  bool pointless(Limit key) const {
    bool experts = evaluator_.job().model.isMoe();
    switch (key) {
    case Limit::VirtualPipeline:
    case Limit::Schedule:
      return choice_.pp == 1;
    case Limit::ExpertParallel:
    case Limit::ExpertTensorParallel:
      return !experts;
    case Limit::SequenceParallel:
      return choice_.tp == 1;
    case Limit::ZeroStage:
      return choice_.dp * choice_.cp == 1;
    default:
      return false;
    }
  }

  void degrees(Limit key) {
    if (pointless(key))
      return;
    std::vector<std::string> domain = keyDomain(fixed_, key);
    auto at = std::find(domain.begin(), domain.end(), keyValue(choice_, key));
    if (at == domain.end())
      return;
    if (at != domain.begin())
      add(key, *(at - 1));
    if (at + 1 != domain.end())
      add(key, *(at + 1));
  }

  void words(Limit key) {
    if (pointless(key))
      return;
    for (const std::string &value : keyDomain(fixed_, key))
      if (value != keyValue(choice_, key))
        add(key, value);
  }

  void add(Limit key, const std::string &value) {
    Spec spec = fixed_;
    setKey(spec, key, value);
    // What cannot stay as it is when the key changes.
    if (key == Limit::TensorParallel)
      setKey(spec, Limit::SequenceParallel, "auto");
    if (key == Limit::ContextParallel)
      setKey(spec, Limit::ContextMethod, "auto");
    if (key == Limit::Schedule || key == Limit::PipelineParallel)
      setKey(spec, Limit::VirtualPipeline, "auto");
    if (key == Limit::VirtualPipeline ||
        (key == Limit::PipelineParallel && choice_.pp == 1))
      setKey(spec, Limit::Schedule, "auto");
    Neighbour neighbour{
        .key = key, .from = keyValue(choice_, key), .to = value};
    evaluate(spec, neighbour);
    if (neighbour.impossible.empty()) {
      neighbour.moreSeconds = neighbour.stepSeconds - base_.stepSeconds;
      neighbour.morePeak = static_cast<int64_t>(neighbour.peakArena) -
                           static_cast<int64_t>(base_.peakArena);
      // auto takes no ZeRO-2 or 3 under a pipeline; a person may.
      neighbour.excluded =
          restrictionsBroken(spec_, neighbour.choice) != 0 ||
          (spec_.parallelism.zeroStage.isAuto && neighbour.choice.zero >= 2 &&
           neighbour.choice.pp > 1);
    }
    found_.push_back(std::move(neighbour));
  }

  /// The best choice of a spec that leaves at most a few open: the one that
  /// breaks fewest limits, then the fastest.
  void evaluate(const Spec &spec, Neighbour &result) {
    Space space(spec);
    std::string reason = "no such combination";
    std::vector<model::Choice> nodes;
    auto misfit = [&](int64_t, const Misfit &why) { reason = why.str(); };
    space.nodes({.node = [&](const model::Choice &node,
                             int64_t) { nodes.push_back(node); },
                 .rejected = misfit});
    bool any = false;
    auto visit = [&](const model::Choice &leaf) {
      std::vector<std::string> breaks = broken(leaf, space);
      double step = evaluator_.step(leaf);
      if (any && std::pair(breaks.size(), step) >=
                     std::pair(result.breaks.size(), result.stepSeconds))
        return;
      any = true;
      result.choice = leaf;
      result.stepSeconds = step;
      result.peakArena = evaluator_.peak(leaf).bytes;
      result.breaks = std::move(breaks);
    };
    for (const model::Choice &node : nodes)
      space.leaves(
          node, [&](model::Choice &leaf) { visit(leaf); }, misfit);
    if (!any)
      result.impossible = reason;
    else
      result.stepSeconds = evaluator_.timed(result.choice);
  }

  std::vector<std::string> broken(const model::Choice &leaf,
                                  const Space &space) {
    std::vector<std::string> breaks;
    char text[160];
    if (std::string why = evaluator_.forbids(leaf); !why.empty())
      breaks.push_back("representation: " + why);
    if (std::string why = space.refuses(leaf); !why.empty())
      breaks.push_back("search.space: " + why);
    Verdict verdict = evaluator_.judge(leaf);
    if (!verdict.memoryFits) {
      std::snprintf(
          text, sizeof text, "memory_limit by %.2f GiB on stage %lld",
          static_cast<double>(verdict.peakArena - evaluator_.limitBytes()) /
              kGib,
          static_cast<long long>(verdict.peakStage));
      breaks.push_back(text);
    }
    if (!verdict.bubbleFits) {
      std::snprintf(text, sizeof text, "max_bubble: %.4g above %.4g",
                    verdict.bubble, *spec_.constraints.maxBubble);
      breaks.push_back(text);
    }
    if (!verdict.hostFits) {
      std::snprintf(text, sizeof text, "host_memory_limit by %.2f GiB",
                    static_cast<double>(verdict.hostBytes -
                                        *evaluator_.bounds().hostBytes) /
                        kGib);
      breaks.push_back(text);
    }
    return breaks;
  }

  const Spec &spec_;
  const model::Choice choice_;
  Evaluator evaluator_;
  Spec fixed_;
  Neighbour base_;
  std::vector<Neighbour> found_;
};

} // namespace

std::vector<Neighbour> search::neighbours(const Spec &spec,
                                          const Candidate &choice) {
  Activity activity("neighbours");
  return Around(spec, choice).all();
}
