//===- Events.h - the events of a plan, one by one ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_MUTATION_EVENTS_H
#define RECKON_TESTS_MUTATION_EVENTS_H

#include "tests/mutation/Mutations.h"

namespace reckon::mutation {

/// An event with all its records and waits.
struct EventPlace {
  size_t stage = 0;
  int fragment = -1; ///< -1: of the list `step`
  uint32_t event = 0;
  std::string name; ///< "stage 1 step 1RECV_F0 -> 1F0"
};

/// Every event that something records and something waits for.
std::vector<EventPlace> eventsOf(const Stages &stages);

/// Whether something else orders what the event orders: the messages between
/// stages, with the streams and events that are left, or the end of the step,
/// which every rank waits for. The proofs, which look at one rank at a time,
/// ask for such an event all the same; no execution can show that it is
/// missing. Of a fragment's events false.
bool impliedElsewhere(const Stages &stages, const EventPlace &place);

/// Takes the event's records and waits out.
void removeEvent(Stages &stages, const EventPlace &place);

} // namespace reckon::mutation

#endif // RECKON_TESTS_MUTATION_EVENTS_H
