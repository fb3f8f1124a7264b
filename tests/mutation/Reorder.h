//===- Reorder.h - orders of messages that need buffered sends ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_TESTS_MUTATION_REORDER_H
#define RECKON_TESTS_MUTATION_REORDER_H

#include "tests/mutation/Mutations.h"

namespace reckon::mutation {

/// Where the messages of a stage go; a receive comes right before its consumer.
enum class Order {
  OneStream, ///< all: a send of one neighbour may wait behind one of another
  TwoStreams ///< sends and receives apart
};
inline constexpr Order kOrders[] = {Order::OneStream, Order::TwoStreams};

/// "one-stream", "two-streams".
const char *orderName(Order order);

/// Changes the lists "step" of all stages. What receives fill is given out
/// anew, for fewer slots are in flight, with the events that this needs: so the
/// plan computes the same as before, if it ends.
void reorder(Stages &stages, Order order);

/// What a step comes to when only streams, events and messages hold back its
/// actions: collectives and kernels take no time.
struct Progress {
  size_t actions = 0;
  size_t ended = 0;
  /// The first action of each stream that has not ended.
  std::vector<std::string> blocked;
};

/// Sends either wait for their receives, as on NCCL, or end at once.
Progress play(const Stages &stages, bool bufferedSends);

} // namespace reckon::mutation

#endif // RECKON_TESTS_MUTATION_REORDER_H
