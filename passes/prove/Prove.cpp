//===- Prove.cpp - a plan of all ranks, proved from its files -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Prove.h"

#include "passes/prove/Checks.h"
#include "runtime/plan/PlanIO.h"

#include <functional>

using namespace reckon;
using namespace reckon::prove;

Result<Proof> prove::provePlan(std::span<const plan::StagePlanT *const> stages,
                               const Intent &intent, Clock &clock) {
  double begin = clock.seconds();
  if (stages.empty())
    return refuse("a plan without stages");
  for (const plan::StagePlanT *stage : stages)
    RECKON_TRY(
        plan::validateStagePlan(*stage, plan::stageFileName(stage->stage)));
  Program program(*stages[0]->mesh);
  if (program.mesh().cp != 1 || program.mesh().ep != 1)
    return refuse("context and expert parallelism have no proofs yet");
  RECKON_TRY(prepare(stages, program));

  struct Check {
    const char *name;
    std::function<Status(std::string &)> run;
  };
  // Later checks rely on earlier ones: order on the layout of memory, meaning
  // on the order.
  const Check checks[] = {
      {"tables match the spec",
       [&](std::string &d) { return checkTables(program, intent, d); }},
      {"memory lies apart",
       [&](std::string &d) { return checkArena(program, d); }},
      {"slots equal what is in flight",
       [&](std::string &d) { return checkSlots(program, d); }},
      {"collectives and messages agree",
       [&](std::string &d) { return checkAgreement(program, d); }},
      {"no deadlock",
       [&](std::string &d) { return checkDeadlock(program, d); }},
      {"every access is ordered",
       [&](std::string &d) { return checkOrder(program, d); }},
      {"a step computes the model's",
       [&](std::string &d) { return checkMeaning(program, intent, d); }},
  };
  Proof proof;
  for (const Check &check : checks) {
    Fact fact;
    fact.name = check.name;
    double start = clock.seconds();
    if (Status status = check.run(fact.detail); !status)
      return makeError(status.error().code, std::string("not proved: ") +
                                                check.name + ": " +
                                                status.error().message);
    fact.seconds = clock.seconds() - start;
    proof.facts.push_back(std::move(fact));
  }
  proof.seconds = clock.seconds() - begin;
  return proof;
}
