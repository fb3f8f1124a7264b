//===- reckon-drop-events.cpp - is every event of a plan needed? ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Takes one event after the other out of a plan. The proofs must refuse every
// such plan. Executed all the same, on emulated CUDA devices whose streams take
// turns in the order of a seed, it should fail or compute other bits under some
// seed: so the emulation does show what a missing event does.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/PlanDirectory.h"
#include "passes/prove/Prove.h"
#include "runtime/plan/PlanIO.h"
#include "tests/mutation/Events.h"
#include "tests/mutation/RunPlan.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

using namespace reckon;
using namespace reckon::mutation;

namespace {

struct Arguments {
  std::string plan;
  int seeds = 8;
  int steps = 2;
  int every = 1;
  double timeout = 60;
  double least = 0.8;
  bool verbose = false;
};

struct Counts {
  int events = 0;
  int refused = 0; ///< by the proofs
  int bits = 0;    ///< other bits under some seed
  int failed = 0;  ///< an error, a crash or a hang under some seed
  int implied = 0; ///< ordered by something else too, and unseen
  int unseen = 0;  ///< the same bits under every seed
};

bool refused(const Stages &mutant, const prove::Intent &intent) {
  std::vector<const plan::StagePlanT *> pointers;
  for (const auto &stage : mutant)
    pointers.push_back(stage.get());
  return !prove::provePlan(pointers, intent).status().ok();
}

int run(const Arguments &arguments) {
  auto plan = prove::readPlanDirectory(systemFiles(), arguments.plan);
  if (!plan) {
    std::fprintf(stderr, "%s\n", plan.error().message.c_str());
    return static_cast<int>(plan.error().code);
  }
  auto execute = [&](const Stages &stages, uint64_t seed, double timeout) {
    return runPlan(stages, arguments.steps, seed, timeout,
                   RunDevice::CudaEmulated);
  };
  Outcome original = execute(plan->stages, 1, 300);
  if (original.end != Outcome::Done) {
    std::fprintf(stderr, "the plan itself does not run: %s\n",
                 original.text.c_str());
    return 1;
  }
  for (int seed = 2; seed <= arguments.seeds; ++seed)
    if (!(execute(plan->stages, static_cast<uint64_t>(seed), 300) ==
          original)) {
      std::fprintf(stderr, "seed %d gives the plan itself other bits\n", seed);
      return 1;
    }
  double timeout =
      std::min(arguments.timeout, std::max(5.0, 20 * original.seconds));

  Counts counts;
  std::vector<EventPlace> places = eventsOf(plan->stages);
  for (size_t i = 0; i < places.size();
       i += static_cast<size_t>(arguments.every)) {
    ++counts.events;
    Stages mutant = copyOf(plan->stages);
    removeEvent(mutant, places[i]);
    bool caught = refused(mutant, plan->intent);
    counts.refused += caught;
    Outcome worst = original;
    int seed = 0;
    while (worst == original && seed < arguments.seeds)
      worst = execute(mutant, static_cast<uint64_t>(++seed), timeout);
    bool same = worst == original;
    bool implied = impliedElsewhere(plan->stages, places[i]);
    counts.implied += same && implied;
    counts.unseen += same && !implied;
    counts.bits += !same && worst.end == Outcome::Done;
    counts.failed += worst.end != Outcome::Done;
    if (arguments.verbose || !caught || same)
      std::printf("  %s: %s, %s\n", places[i].name.c_str(),
                  caught ? "refused" : "PROVED",
                  same && implied ? "implied by messages or the step's end"
                  : same          ? "the same bits under every seed"
                  : worst.end == Outcome::Done ? "other bits"
                  : worst.end == Outcome::Hung ? "hangs"
                                               : worst.text.c_str());
    if ((counts.events & 15) == 0) {
      std::printf("%d of %zu events\n", counts.events, places.size());
      std::fflush(stdout);
    }
  }
  int seen = counts.bits + counts.failed;
  std::printf("%d events removed one by one: %d refused by the proofs; "
              "%d are implied by messages or the end of the step and show "
              "nothing; of the other %d, with up to %d seeds, %d give other "
              "bits, %d fail or hang, %d are unseen\n",
              counts.events, counts.refused, counts.implied,
              counts.events - counts.implied, arguments.seeds, counts.bits,
              counts.failed, counts.unseen);
  bool good = counts.events > 0 && counts.refused == counts.events &&
              seen >= arguments.least * (counts.events - counts.implied);
  std::printf("%s\n", good ? "good" : "FAILED");
  return good ? 0 : 1;
}

} // namespace

int main(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Takes the events out of a plan, one by one.");
  app.add_option("PLAN_DIR", arguments.plan, "plan directory")->required();
  app.add_option("--seeds", arguments.seeds, "orders to try with each event");
  app.add_option("--steps", arguments.steps, "training steps of an execution");
  app.add_option("--every", arguments.every, "take only every n-th event")
      ->check(CLI::PositiveNumber);
  app.add_option("--timeout", arguments.timeout,
                 "most seconds until an execution counts as hung");
  app.add_option("--least", arguments.least,
                 "share of the events whose absence must show");
  app.add_flag("--verbose", arguments.verbose, "one line for each event");
  CLI11_PARSE(app, argc, argv);
  return run(arguments);
}
