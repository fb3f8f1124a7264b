//===- Assign.cpp - layers and recomputation of each stage ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/assign/Benders.h"
#include "passes/search/assign/Program.h"

using namespace reckon;
using namespace reckon::search;

AssignFreedom search::assignFreedom(const Spec &spec) {
  const auto &p = spec.parallelism;
  // {layers: n} binds every stage to n; uneven stages would loosen it.
  bool counted = p.recomputeLayers.has_value();
  // DeepSpeed spreads layers itself, and no framework recomputes another number
  // of layers on each rank.
  Representation as = *p.representation;
  return {.layout = p.pipelineLayout->empty() && !counted &&
                    as != Representation::DeepSpeed,
          .recompute = p.recompute.isAuto && !counted &&
                       as == Representation::Reckon &&
                       *spec.search.space != SearchSpace::Compilable};
}

Assigned search::assignLayers(const model::Choice &choice, Evaluator &evaluator,
                              uint64_t limitBytes,
                              const AssignOptions &options) {
  Frame frame(choice, evaluator, limitBytes, options);
  if (options.z3 && hasCuts(choice))
    return solveBenders(frame);
  Assigned found = solveProgram(frame);
  if (found.choice || choice.v == 1 || !frame.layoutOpen() ||
      found.bound >= options.beat)
    return found;
  // Orders of several chunks may wait for more than paths say. The layout that
  // the choice has is simple, and may gain from recomputing less.
  AssignOptions even = options;
  even.freedom.layout = false;
  Frame given(choice, evaluator, limitBytes, even);
  Assigned simple = solveProgram(given);
  found.choice = std::move(simple.choice);
  found.step = simple.step;
  return found;
}
