//===- Prove.h - a plan of all ranks, proved from its files ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `reckon compile` proves what it is about to write, and `reckon verify` proves
// the same again from the files alone. A plan is proved for all its ranks
// together: the ranks of a stage run one program and differ only in functions
// of their coordinates, so one of them stands for all, and every such function
// is compared on all coordinates. docs/proofs.md has the arguments.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_PROVE_H
#define RECKON_PASSES_PROVE_PROVE_H

#include "passes/prove/Intent.h"
#include "runtime/base/Os.h"
#include "runtime/base/Status.h"
#include "runtime/plan/plan_generated.h"

#include <span>
#include <string>
#include <vector>

namespace reckon::prove {

/// One thing that was proved.
struct Fact {
  std::string name;   ///< "collectives agree"
  std::string detail; ///< with counts
  double seconds = 0;
};

struct Proof {
  std::vector<Fact> facts;
  double seconds = 0;
};

/// Proves the plan whose stages these are, in order, to compute what `intent`
/// describes. The first failure is an Error with ExitCode::Mismatch that names
/// the rank, the instruction, the other party and the YAML line; Corrupt when
/// a stage is not even consistent in itself.
Result<Proof> provePlan(std::span<const plan::StagePlanT *const> stages,
                        const Intent &intent, Clock &clock = systemClock());

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_PROVE_H
