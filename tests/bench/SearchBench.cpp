//===- SearchBench.cpp - how long the search itself takes -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// usage: reckon-search-bench SPEC.yaml... [KEY=VALUE...]
// Prints the space, what was opened, and the processor time of the outer
// search with its proof. tests/bench/plan.sh runs it beside `reckon plan`.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Load.h"
#include "passes/search/Evaluate.h"

#include <cstdio>
#include <cstring>
#include <ctime>

using namespace reckon;
using namespace reckon::search;

int main(int argc, char **argv) {
  std::vector<std::string> files, sets;
  for (int i = 1; i < argc; ++i)
    (std::strchr(argv[i], '=') ? sets : files).push_back(argv[i]);
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(files, sets, errors);
  if (!spec) {
    std::fprintf(stderr, "%s\n", spec.error().message.c_str());
    return 2;
  }
  if (std::getenv("LIFT"))
    spec = liftRestrictions(*spec);
  std::clock_t start = std::clock();
  Evaluator evaluator(*spec);
  Space space(*spec);
  OuterResult result = searchOuter(
      space, evaluator, evaluator.bounds(),
      {.top = *spec->search.top, .objective = *spec->search.objective});
  double seconds =
      static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  const Counts &c = result.counts;
  std::printf("space %ld, nodes %ld, opened %ld, limits %ld, feasible %ld, "
              "bound %ld, best %.6f s, outer %.4f s\n",
              static_cast<long>(c.space), static_cast<long>(c.nodes),
              static_cast<long>(c.nodesOpened), static_cast<long>(c.limits),
              static_cast<long>(c.feasible), static_cast<long>(c.bound),
              result.best.empty() ? 0.0 : result.best.front().seconds,
              seconds);
  return result.best.empty() ? 3 : 0;
}
