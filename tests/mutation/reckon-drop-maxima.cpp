//===- reckon-drop-maxima.cpp - does every fp8 maximum matter? ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Takes away, one at a time, each all_reduce that makes ranks agree on the
// largest magnitude of a tensor that they share. The proof must refuse every
// such plan, and running it must give other bits. Prints both counts; exits
// with 1 if one of them falls short.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/PlanDirectory.h"
#include "runtime/plan/PlanIO.h"
#include "tests/mutation/RunPlan.h"

#include <CLI/CLI.hpp>

using namespace reckon;
using namespace reckon::mutation;
using namespace reckon::plan;

namespace {

constexpr double patience = 300; // seconds until a run counts as hung
constexpr int steps = 2;

/// An instruction by its place.
struct Site {
  size_t stage, fragment, number;
};

/// The all_reduces by maximum of single f32: no other maximum is that short.
std::vector<Site> maxima(const Stages &stages) {
  std::vector<Site> found;
  for (size_t s = 0; s < stages.size(); ++s)
    for (size_t f = 0; f < stages[s]->fragments.size(); ++f) {
      const auto &list = stages[s]->fragments[f]->instructions;
      for (size_t i = 0; i < list.size(); ++i)
        if (list[i]->op == Opcode::all_reduce &&
            list[i]->reduction == Reduction::max &&
            elementCount(list[i]->inputs[0]->shape) == 1)
          found.push_back({s, f, i});
    }
  return found;
}

int run(const std::string &directory, size_t most) {
  auto plan = prove::readPlanDirectory(systemFiles(), directory);
  if (!plan) {
    std::fprintf(stderr, "%s\n", plan.error().message.c_str());
    return static_cast<int>(plan.error().code);
  }
  Outcome original = runPlan(plan->stages, steps, {}, patience);
  if (original.end != Outcome::Done) {
    std::fprintf(stderr, "the plan does not run: %s\n", original.text.c_str());
    return 1;
  }
  std::vector<Site> sites = maxima(plan->stages);
  size_t refused = 0, executed = 0, changed = 0;
  for (size_t i = 0; i < sites.size(); ++i) {
    Stages mutant = copyOf(plan->stages);
    auto &list =
        mutant[sites[i].stage]->fragments[sites[i].fragment]->instructions;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(sites[i].number));
    std::vector<const StagePlanT *> pointers;
    for (const auto &stage : mutant)
      pointers.push_back(stage.get());
    auto proof = prove::provePlan(pointers, plan->intent);
    refused += !proof;
    if (!proof && i == 0)
      std::printf("  the first: %s\n", proof.error().message.c_str());
    // Spread over the plan, as each run takes a while.
    if (i * most / sites.size() == (i + 1) * most / sites.size() &&
        sites.size() > most)
      continue;
    ++executed;
    changed += !(runPlan(mutant, steps, {}, patience) == original);
  }
  std::printf("%s: %zu maxima, %zu refused; %zu of %zu executed change bits\n",
              directory.c_str(), sites.size(), refused, changed, executed);
  bool good = !sites.empty() && refused == sites.size() && changed == executed;
  return good ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  std::string directory;
  size_t most = 12;
  CLI::App app("Takes the maxima of an fp8 plan away, one at a time.");
  app.add_option("PLAN_DIR", directory, "an fp8 plan")->required();
  app.add_option("--execute", most, "plans to run");
  CLI11_PARSE(app, argc, argv);
  return run(directory, most);
}
