//===- Checks.h - the proofs, one function each ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_CHECKS_H
#define RECKON_PASSES_PROVE_CHECKS_H

#include "passes/prove/Intent.h"
#include "passes/prove/Program.h"

#include <string>

namespace reckon::prove {

/// Each proof fills `detail` with what it covered, in numbers.

/// Members of every group run equal sequences of collectives, and the two sides
/// of every channel equal sequences of messages.
Status checkAgreement(const Program &program, std::string &detail);

/// Every stream of every rank gets to its end when a send, a receive or a
/// collective ends only together with its other parties.
Status checkDeadlock(const Program &program, std::string &detail);

/// Conflicting accesses to a byte are ordered by a stream or an event, and so
/// are operations of one communicator.
Status checkOrder(Program &program, std::string &detail);

/// States, slots and lanes lie apart; no instruction reads what it overwrites
/// unless its kernel allows it.
Status checkArena(Program &program, std::string &detail);

/// Slots are acquired, used and released in turn, and there are as many as are
/// in flight at once.
Status checkSlots(const Program &program, std::string &detail);

/// The tables say what the intent says: sizes, optimizer, schedule, and every
/// layer's parameters exactly once and in order.
Status checkTables(Program &program, const Intent &intent, std::string &detail);

/// What the step computes is what the intent describes.
Status checkMeaning(Program &program, const Intent &intent,
                    std::string &detail);

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_CHECKS_H
