//===- Repeat.h - the part of a schedule that repeats ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_REPEAT_H
#define RECKON_PASSES_SEARCH_SCHEDULE_REPEAT_H

#include "passes/search/schedule/Ticks.h"

#include <optional>

namespace reckon::search {

/// A block of a timetable that can be run any number of times in place of once:
/// from `begin` (inclusive) to `begin + length` (exclusive) every stage starts
/// the forward, the input gradient and the weight gradient of `microBatches`
/// micro-batches, and what has just been started at both ends is the same, one
/// block apart.
///
/// Why it can be repeated: keep all that starts before begin + length, and let
/// all that starts at begin or later follow once more, `length` later and for
/// micro-batches that are `microBatches` higher. Every action is there once,
/// since a pass of a stage starts its micro-batches in order and the block has
/// exactly `microBatches` of them. An action that follows needs results that
/// either follow with it, or started before begin; the latter's counterpart,
/// one block on, started before begin + length, and has arrived unless it
/// started less than `guard` before that: there the two ends agree. For the
/// same reason no two actions of a rank overlap, and after the block as many
/// stashes are live as before it.
struct Repeat {
  int64_t microBatches = 0;
  int64_t begin = 0;
  int64_t length = 0;
  /// The longest pass and the transfer: what starts earlier is done.
  int64_t guard = 0;
};

/// Start times by stage, pass (0 F, 1 input gradient, 2 weight gradient; a
/// whole backward is both at once) and micro-batch.
struct StartTable {
  int64_t stages = 0;
  int64_t microBatches = 0;
  std::vector<int64_t> starts;
  std::vector<char> whole; ///< by stage and micro-batch: backward in one piece

  const int64_t *row(int64_t stage, int64_t pass) const {
    return &starts[(stage * 3 + pass) * microBatches];
  }
  bool isWhole(int64_t stage, int64_t microBatch) const {
    return whole[stage * microBatches + microBatch];
  }
};

StartTable startTable(const model::PipelineOrders &orders,
                      const model::Timetable &table);

/// Whether each pass of a stage starts its micro-batches in order.
bool inOrder(const StartTable &table);

/// Whether `repeat` is what its definition asks for.
bool repeats(const StartTable &table, const Repeat &repeat);

/// The earliest block of a multiple of `period` micro-batches, or none.
std::optional<Repeat> findRepeat(const StartTable &table, const Ticks &ticks,
                                 int64_t period);

/// The table with the block run `times` times more.
StartTable repeated(const StartTable &table, const Repeat &repeat,
                    int64_t times);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_REPEAT_H
