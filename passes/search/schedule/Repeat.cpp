//===- Repeat.cpp - the part of a schedule that repeats -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Repeat.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

StartTable search::startTable(const model::PipelineOrders &orders,
                              const model::Timetable &table) {
  StartTable made{orders.stages(), orders.m, {}, {}};
  made.starts.assign(made.stages * 3 * made.microBatches, 0);
  made.whole.assign(made.stages * made.microBatches, 0);
  for (int64_t rank = 0; rank < orders.p; ++rank)
    for (const model::TimedAction &timed : table.ranks[rank]) {
      int64_t stage = orders.stage(rank, timed.action.chunk);
      int64_t i = timed.action.microBatch;
      auto start = static_cast<int64_t>(timed.start);
      auto set = [&](int64_t pass) {
        made.starts[(stage * 3 + pass) * made.microBatches + i] = start;
      };
      switch (timed.action.pass) {
      case 'F':
        set(0);
        break;
      case 'I':
        set(1);
        break;
      case 'W':
        set(2);
        break;
      default:
        set(1), set(2);
        made.whole[stage * made.microBatches + i] = 1;
      }
    }
  return made;
}

bool search::inOrder(const StartTable &table) {
  for (int64_t row = 0; row < 3 * table.stages; ++row) {
    const int64_t *starts = table.row(row / 3, row % 3);
    for (int64_t i = 1; i < table.microBatches; ++i)
      if (starts[i] < starts[i - 1])
        return false;
  }
  return true;
}

bool search::repeats(const StartTable &table, const Repeat &repeat) {
  int64_t m = table.microBatches, end = repeat.begin + repeat.length;
  for (int64_t stage = 0; stage < table.stages; ++stage)
    for (int64_t pass = 0; pass < 3; ++pass) {
      const int64_t *starts = table.row(stage, pass);
      auto before = [&](int64_t time) {
        return std::lower_bound(starts, starts + m, time) - starts;
      };
      int64_t first = before(repeat.begin), past = before(end);
      if (past != first + repeat.microBatches)
        return false;
      int64_t guarded = before(repeat.begin - repeat.guard);
      if (before(end - repeat.guard) != guarded + repeat.microBatches)
        return false;
      for (int64_t i = guarded; i < first; ++i) {
        int64_t next = i + repeat.microBatches;
        if (starts[next] != starts[i] + repeat.length ||
            (pass > 0 && table.isWhole(stage, next) != table.isWhole(stage, i)))
          return false;
      }
    }
  return true;
}

std::optional<Repeat> search::findRepeat(const StartTable &table,
                                         const Ticks &ticks, int64_t period) {
  int64_t m = table.microBatches;
  int64_t guard = ticks.longest() + ticks.transfer;
  for (int64_t block = period; block <= std::min(m - 1, 8 * period);
       block += period)
    for (int64_t i = 0; i + block < m; ++i) {
      // Begin where the first stage starts a forward.
      const int64_t *forwards = table.row(0, 0);
      Repeat repeat{block, forwards[i], forwards[i + block] - forwards[i],
                    guard};
      if (repeat.begin >= guard && repeat.length >= guard &&
          repeats(table, repeat))
        return repeat;
    }
  return std::nullopt;
}

StartTable search::repeated(const StartTable &table, const Repeat &repeat,
                            int64_t times) {
  StartTable made = table;
  made.microBatches += times * repeat.microBatches;
  made.starts.assign(made.stages * 3 * made.microBatches, 0);
  made.whole.assign(made.stages * made.microBatches, 0);
  for (int64_t stage = 0; stage < table.stages; ++stage)
    for (int64_t pass = 0; pass < 3; ++pass) {
      const int64_t *starts = table.row(stage, pass);
      for (int64_t i = 0; i < table.microBatches; ++i)
        for (int64_t run = 0; run <= times; ++run) {
          // Before the block: once, as it is. In it: every time. After it:
          // once, behind the last run.
          if (starts[i] < repeat.begin
                  ? run > 0
                  : starts[i] >= repeat.begin + repeat.length && run < times)
            continue;
          int64_t at = i + run * repeat.microBatches;
          made.starts[(stage * 3 + pass) * made.microBatches + at] =
              starts[i] + run * repeat.length;
          if (pass == 1)
            made.whole[stage * made.microBatches + at] =
                table.isWhole(stage, i);
        }
    }
  return made;
}
