//===- CheckPipeline.cpp - stages, their layout and recomputation ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Degrees.h"

#include <algorithm>
#include <numeric>

namespace reckon {
namespace {

class Checker : Degrees {
public:
  using Degrees::Degrees;

  void run() {
    checkLayout();
    checkPipeline();
    if (p_.recomputeLayers)
      checkRecompute(*model_.numHiddenLayers);
  }

private:
  /// Drops the values for which `keep` does not hold. False when none is left,
  /// and then nothing is changed.
  static bool filter(Choice<int64_t> &choice, const SourceLoc &loc,
                     std::vector<int64_t> from,
                     const std::function<bool(int64_t)> &keep) {
    std::vector<int64_t> kept;
    for (int64_t value : from)
      if (keep(value))
        kept.push_back(value);
    if (kept.empty())
      return false;
    if (choice.isAuto)
      choice.loc = loc;
    choice.isAuto = false;
    choice.values = std::move(kept);
    return true;
  }

  void checkLayout() {
    const std::vector<int64_t> &layout = *p_.pipelineLayout;
    if (layout.empty())
      return;
    int64_t layers = *model_.numHiddenLayers;
    int64_t sum = std::accumulate(layout.begin(), layout.end(), int64_t{0});
    int64_t stages = static_cast<int64_t>(layout.size());
    const SourceLoc &loc = p_.pipelineLayout.loc;
    if (layers > 0 && sum != layers)
      reader_.error(loc, "expected parallelism.pipeline_layout to add up to "
                         "num_hidden_layers " +
                             num(layers) + ", got " + num(sum) + " on " +
                             num(stages) + " stages; change the layout");
    Choice<int64_t> &pp = p_.pipelineParallel, &v = p_.virtualPipeline;
    // The length settles the number of stages: one chunk a rank unless a key
    // says otherwise.
    std::vector<int64_t> ranks = pp.values, chunks = v.values;
    if (pp.isAuto && v.isAuto)
      ranks = {stages}, chunks = {1};
    else if (pp.isAuto)
      ranks = quotients(stages, chunks);
    else if (v.isAuto)
      chunks = quotients(stages, ranks);
    auto matches = [&](int64_t value, const std::vector<int64_t> &others) {
      return std::any_of(others.begin(), others.end(), [&](int64_t other) {
        return value * other == stages;
      });
    };
    std::vector<int64_t> all = chunks;
    if (filter(pp, loc, ranks,
               [&](int64_t value) { return matches(value, all); }) &&
        filter(v, loc, chunks,
               [&](int64_t value) { return matches(value, pp.values); }))
      return;
    std::string wanted = pp.isAuto || v.isAuto ? "a multiple of " : "";
    if (!pp.isAuto)
      wanted += "pipeline_parallel " + num(pp.value());
    if (!v.isAuto)
      wanted += (pp.isAuto ? "virtual_pipeline " : " * virtual_pipeline ") +
                num(v.value());
    reader_.error(loc, "expected parallelism.pipeline_layout to have " +
                           wanted + " stages, got " + num(stages) +
                           "; change one of them");
  }

  /// n / d of the d that divide n.
  static std::vector<int64_t> quotients(int64_t n,
                                        const std::vector<int64_t> &divisors) {
    std::vector<int64_t> out;
    for (int64_t d : divisors)
      if (n % d == 0)
        out.push_back(n / d);
    return out;
  }

  void checkPipeline() {
    int64_t layers = *model_.numHiddenLayers;
    // Embedding and loss may have a stage of their own.
    int64_t most = layers > 0 ? layers + 2 : 0;
    requireOne(
        p_.pipelineParallel, "pipeline_parallel",
        [&](int64_t pp) -> std::string {
          if (most > 0 && pp > most)
            return "of at most num_hidden_layers " + num(layers) +
                   " and two stages for embedding and loss";
          if (world_ > 0 && world_ % pp != 0)
            return "to divide " + worldText();
          return "";
        },
        world_ > 0 ? "use " + divisorsOf(world_, most > 0 ? most : world_)
                   : "use fewer stages");
    const Choice<int64_t> &pp = p_.pipelineParallel, &v = p_.virtualPipeline;
    if (pp.fixed() && most > 0 && pp.value() <= most && pp.value() > 1)
      requireOne(
          v, "virtual_pipeline",
          [&](int64_t chunks) -> std::string {
            return chunks * pp.value() <= most
                       ? ""
                       : "times pipeline_parallel " + num(pp.value()) +
                             " of at most num_hidden_layers " + num(layers) +
                             " and two";
          },
          "use at most " + num(most / pp.value()));
  }

  void checkRecompute(int64_t layers) {
    int64_t stages = 1;
    if (p_.pipelineParallel.fixed())
      stages *= p_.pipelineParallel.value();
    if (p_.virtualPipeline.fixed())
      stages *= p_.virtualPipeline.value();
    int64_t most = (layers + stages - 1) / stages;
    if (!p_.pipelineLayout->empty())
      most = *std::max_element(p_.pipelineLayout->begin(),
                               p_.pipelineLayout->end());
    if (layers > 0 && *p_.recomputeLayers > most)
      reader_.error(
          p_.recompute.loc,
          "expected parallelism.recompute of at most the " + num(most) +
              " layers of a stage, got {layers: " + num(*p_.recomputeLayers) +
              "}; use a smaller number, or full");
  }
};

} // namespace

void checkPipeline(Spec &spec, Reader &reader) { Checker(spec, reader).run(); }

} // namespace reckon
