//===- Mutations.h - faults, made in the stages of a plan -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_MUTATION_MUTATIONS_H
#define RECKON_TESTS_MUTATION_MUTATIONS_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace reckon::mutation {

enum class Kind {
  DropEvent,       ///< a record or a wait, of a fragment or of an action
  DropReceive,     ///< a receive (a load where a plan has one stage only)
  DropCollective,  ///< in one fragment of one stage
  SwapCollectives, ///< of one fragment of one stage
  ChangeSize,      ///< of a buffer, or the group of a collective
  ShiftOffset,     ///< of a buffer, a state or a slot binding
  SwapActions,     ///< of one list
  DropLayer,       ///< its instructions, or its weights for another layer's
  ChangeScale      ///< a float, an accumulation flag or another argument
};
inline constexpr Kind kKinds[] = {
    Kind::DropEvent,       Kind::DropReceive, Kind::DropCollective,
    Kind::SwapCollectives, Kind::ChangeSize,  Kind::ShiftOffset,
    Kind::SwapActions,     Kind::DropLayer,   Kind::ChangeScale};

/// "drop an event".
const char *kindName(Kind kind);

using Stages = std::vector<std::unique_ptr<plan::StagePlanT>>;

/// A deep copy.
Stages copyOf(const Stages &stages);

/// Makes one fault of a kind at a random place; says what it did, or is empty
/// when the plan has nothing of the sort (no collectives, say).
std::string mutate(Stages &stages, Kind kind, std::mt19937_64 &random);

} // namespace reckon::mutation

#endif // RECKON_TESTS_MUTATION_MUTATIONS_H
