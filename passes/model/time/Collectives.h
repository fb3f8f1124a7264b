//===- Collectives.h - times of collectives on the job's topology ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_COLLECTIVES_H
#define RECKON_PASSES_MODEL_TIME_COLLECTIVES_H

#include "passes/model/time/Efficiency.h"

namespace reckon::model {

/// Ranks that communicate: `size` of them, `stride` apart in the order tensor,
/// context, (expert), data, pipeline.
struct Group {
  int64_t size = 1;
  int64_t stride = 1;
};

/// Alpha-beta times; the link is the slowest that the group crosses.
struct Links {
  Links(const Job &job, const Efficiency &efficiency);

  bool within(const Group &group) const {
    return job.withinDomain(group.stride, group.size);
  }
  /// Members of the group that share a domain.
  double perDomain(const Group &group) const;
  /// Bytes/s at which every rank of the group sends in a ring or tree. The
  /// members on one domain use its links to the others together.
  double bandwidth(const Group &group) const;
  double latency(const Group &group) const;

  /// One pass, all-gather or reduce-scatter, of `bytes` (whole, not a rank's
  /// share), in `pieces` collectives: (size-1)/size of it at bandwidth(). An
  /// all-reduce is two.
  double pass(const Group &group, double bytes, double pieces = 1) const;
  /// The same for tensor parallelism, whose messages are small and many.
  double tensorPass(const Group &group, double bytes) const;
  /// A message to one neighbour.
  double message(bool within, double bytes) const;
  /// Each rank sends `bytes` in all, spread evenly over the group; `copies`
  /// tells how often a token goes to one group member (top-k), which lets a
  /// dispatcher send it once to each domain.
  double allToAll(const Group &group, double bytes, double copies) const;

  const Job &job;
  const Efficiency &e;
  double intraRate = 0, interRate = 0;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_COLLECTIVES_H
