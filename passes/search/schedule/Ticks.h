//===- Ticks.h - durations as integers ------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_TICKS_H
#define RECKON_PASSES_SEARCH_SCHEDULE_TICKS_H

#include "passes/model/Schedule.h"

namespace reckon::search {

/// Durations in whole ticks, each rounded up, so that a schedule that holds in
/// ticks holds in seconds.
struct Ticks {
  double length = 1;  ///< of a tick, in the unit of the durations
  bool exact = false; ///< nothing was rounded
  std::vector<model::StageDurations> durations; ///< whole numbers
  int64_t transfer = 0;

  /// Of a virtual stage.
  int64_t of(int64_t stage, char pass) const {
    return static_cast<int64_t>(durations[stage].of(pass));
  }
  /// The last whole tick that is not past `time`.
  int64_t floor(double time) const;
  int64_t longest() const; ///< of all passes
};

/// Exact ticks if the durations are multiples of a common unit that is at least
/// 1/64 of the shortest; else `resolution` of them in the longest.
Ticks inTicks(std::span<const model::StageDurations> durations, double transfer,
              int64_t resolution = int64_t{1} << 20);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_TICKS_H
