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
  // The least of seven, since the machine is rarely alone.
  OuterResult result;
  double seconds = 1e9;
  std::clock_t start;
  for (int run = 0; run < 7; ++run) {
    start = std::clock();
    Evaluator evaluator(*spec);
    Space space(*spec);
    result = searchOuter(
        space, evaluator, evaluator.bounds(),
        {.top = *spec->search.top, .objective = *spec->search.objective});
    seconds = std::min(seconds, static_cast<double>(std::clock() - start) /
                                    CLOCKS_PER_SEC);
  }
  Space space(*spec);
  const Counts &c = result.counts;
  double assignments = 0;
  space.nodes({.node = [&](const model::Choice &node,
                           int64_t) { assignments += space.assignments(node); },
               .rejected = [](int64_t, const Misfit &) {}});
  std::printf("space %ld, nodes %ld, opened %ld, limits %ld, feasible %ld, "
              "bound %ld, best %.6f s, outer %.4f s, assignments %.3g\n",
              static_cast<long>(c.space), static_cast<long>(c.nodes),
              static_cast<long>(c.nodesOpened), static_cast<long>(c.limits),
              static_cast<long>(c.feasible), static_cast<long>(c.bound),
              result.best.empty() ? 0.0 : result.best.front().seconds, seconds,
              assignments);
  if (result.best.empty())
    return 3;
  start = std::clock();
  SearchResult whole = search::search(
      *spec, SearchOptions{.top = *spec->search.top, .runnable = false});
  seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("assigned %ld, best %.6f s, gap %.4f %%, search %.4f s\n",
              static_cast<long>(whole.assignments),
              whole.candidates.front().time.step, 100 * whole.proof.gap,
              seconds);
  return 0;
}
