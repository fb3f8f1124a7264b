//===- CertifyInstance.h - the part of a step that is certified -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_CERTIFYINSTANCE_H
#define RECKON_PASSES_SEARCH_SCHEDULE_CERTIFYINSTANCE_H

#include "passes/search/schedule/Certify.h"
#include "passes/search/schedule/Repeat.h"

namespace reckon::search {

/// Actions that the solver is given; longer instances are left to the checker.
inline constexpr int64_t kMostActions = 150000;

/// Orders whose earliest starts, with the block run again as often as said, are
/// a schedule of the whole step.
struct CertifyInstance {
  /// Whose orders these are: the schedule of the query, or one that needs no
  /// more slots and, with equal stages, no more time.
  model::ScheduleShape shape;
  model::PipelineOrders orders;
  model::Timetable earliest; ///< in ticks
  std::optional<Repeat> repeat;
  int64_t runs = 0; ///< of the block beyond the one in the orders

  int64_t actions() const {
    int64_t count = 0;
    for (const auto &rank : orders.ranks)
      count += std::ssize(rank);
    return count;
  }
  /// Of all micro-batches, in ticks.
  int64_t makespan() const {
    return static_cast<int64_t>(earliest.makespan) +
           (repeat ? runs * repeat->length : 0);
  }
};

/// The shortest step of the same schedule that has a repeating block; the whole
/// step when that is short itself or nothing repeats. Breadth-first orders,
/// whose forwards all come first, repeat nothing: where they are long, the
/// instance is of the 1F1B order with as many chunks.
CertifyInstance certifyInstance(const CertifyQuery &query, const Ticks &ticks);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_CERTIFYINSTANCE_H
