//===- Orders.h - one generator for each named schedule -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_SCHEDULE_ORDERS_H
#define RECKON_PASSES_MODEL_SCHEDULE_ORDERS_H

#include "passes/model/Schedule.h"

namespace reckon::model::schedule {

using Order = std::vector<ComputeAction>;

/// All forwards, then all backwards (Huang et al., 2018); with several chunks
/// a rank the looped breadth-first order (Lamy-Poirier, 2022): a chunk's
/// forwards of all micro-batches, then the next chunk's.
Order breadthFirst(int64_t v, int64_t m);

/// min(p-1-r, m) forwards, then one forward and one backward in turn, then the
/// remaining backwards (Narayanan et al., 2021).
Order oneForwardOneBackward(int64_t p, int64_t m, int64_t rank);

/// The k-th virtual micro-batch of an interleaved schedule: micro-batches go
/// through chunk 0 in groups of g, then the group goes through chunk 1, ...;
/// the last group may be short. Backwards take the chunks from the last down.
struct VirtualOrder {
  int64_t v = 1;
  int64_t m = 1;
  int64_t group = 1;

  int64_t size() const { return v * m; }
  ComputeAction forward(int64_t k) const;
  ComputeAction backward(int64_t k, char pass = 'B') const;
};

/// 2(p-1-r) + (v-1)g forwards in virtual order, then one forward and one
/// backward in turn (Narayanan et al., 2021, as Megatron runs it).
Order interleaved(int64_t p, const VirtualOrder &table, int64_t rank);

/// ZB-H1 (Qi et al., 2023): the order of 1F1B for F and I with (v-1)g + p-1-r
/// forwards ahead; a rank keeps back at most `rank` weight gradients, so that
/// every rank holds as much as rank 0 of 1F1B.
Order zeroBubbleH1(int64_t p, const VirtualOrder &table, int64_t rank);

/// ZB-H2: 2(p-r)-1 forwards ahead and up to 2r weight gradients kept back; no
/// rank waits between its first and its last action when F = I = W.
Order zeroBubbleH2(int64_t p, int64_t m, int64_t rank);

/// ZBV (Qi et al., 2024): two chunks a rank, placed in a V.
Order zeroBubbleV(int64_t p, int64_t m, int64_t rank);

/// DualPipeV (DeepSeek, 2025): two chunks a rank, placed in a V; m >= 2p. The
/// pairs that it overlaps are adjacent here, the forward first.
Order dualPipeV(int64_t p, int64_t m, int64_t rank);

} // namespace reckon::model::schedule

#endif // RECKON_PASSES_MODEL_SCHEDULE_ORDERS_H
