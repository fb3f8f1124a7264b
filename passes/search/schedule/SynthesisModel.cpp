//===- SynthesisModel.cpp - the synthesis question as clauses -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/SynthesisModel.h"

#include <algorithm>
#include <limits>

using namespace reckon;
using namespace reckon::search;

/// Calls body(later, earlier, delay) for every pair of actions of which one
/// must wait for the other's start plus a delay.
template <typename Body> void SynthesisModel::forDependencies(Body body) const {
  const auto &[p, m, lengths, transfer, slots, goal, unit, exact] = query_;
  for (int64_t rank = 0; rank < p; ++rank) {
    auto [f, in, w] = lengths[rank];
    for (int64_t i = 0; i < m; ++i) {
      if (i > 0) // alike micro-batches in order
        for (int64_t pass = 0; pass < 3; ++pass)
          body(index(rank, pass, i), index(rank, pass, i - 1),
               lengths[rank][pass]);
      if (rank > 0)
        body(index(rank, 0, i), index(rank - 1, 0, i),
             lengths[rank - 1][0] + transfer);
      body(index(rank, 1, i), index(rank, 0, i), f);
      if (rank + 1 < p)
        body(index(rank, 1, i), index(rank + 1, 1, i),
             lengths[rank + 1][1] + transfer);
      body(index(rank, 2, i), index(rank, 1, i), in);
      if (i >= slots[rank]) // the slot is free again
        body(index(rank, 0, i), index(rank, 2, i - slots[rank]), w);
    }
  }
}

/// Earliest starts: longest paths, and what a rank must have run before.
void SynthesisModel::earliest() {
  earliest_.assign(3 * query_.p * query_.m, 0);
  for (bool changed = true; changed;) {
    changed = false;
    auto raise = [&](int64_t action, int64_t time) {
      if (earliest_[action] < time) {
        earliest_[action] = time;
        changed = true;
      }
    };
    forDependencies([&](int64_t later, int64_t earlier, int64_t delay) {
      raise(later, earliest_[earlier] + delay);
    });
    for (int64_t rank = 0; rank < query_.p; ++rank) {
      auto [f, in, w] = query_.lengths[rank];
      int64_t first = earliest_[index(rank, 0, 0)];
      for (int64_t i = 0; i < query_.m; ++i) {
        raise(index(rank, 1, i), first + (i + 1) * f + i * in);
        raise(index(rank, 2, i), first + (i + 1) * (f + in) + i * w);
      }
    }
  }
}

/// Latest starts, the same backwards.
void SynthesisModel::latest(int64_t value) {
  int64_t p = query_.p, m = query_.m;
  std::vector<int64_t> end(p, value); // of a rank's window
  if (query_.goal == SynthesisGoal::Span) {
    // Rank 0 starts at 0. Rank r+1 has begun all its forwards and input
    // gradients between its own start and the last input gradient that rank r
    // waits for, which bounds its start, and its span bounds its end.
    int64_t last = value - query_.lengths[0][1] - query_.lengths[0][2];
    for (int64_t rank = 1; rank < p; ++rank) {
      auto [f, in, w] = query_.lengths[rank];
      int64_t done = last - query_.transfer; // end of its last I
      end[rank] = done - m * (f + in) + value;
      last = done - in;
    }
  }
  latest_.assign(3 * p * m, std::numeric_limits<int64_t>::max());
  for (int64_t rank = 0; rank < p; ++rank) {
    auto [f, in, w] = query_.lengths[rank];
    for (int64_t i = 0; i < m; ++i) {
      int64_t left = m - i;
      latest_[index(rank, 0, i)] = end[rank] - left * (f + in + w);
      latest_[index(rank, 1, i)] = end[rank] - left * (in + w);
      latest_[index(rank, 2, i)] = end[rank] - left * w;
    }
    if (query_.goal == SynthesisGoal::Span)
      latest_[index(rank, 0, 0)] =
          std::min(latest_[index(rank, 0, 0)], end[rank] - value);
  }
  for (bool changed = true; changed;) {
    changed = false;
    forDependencies([&](int64_t later, int64_t earlier, int64_t delay) {
      if (latest_[earlier] > latest_[later] - delay) {
        latest_[earlier] = latest_[later] - delay;
        changed = true;
      }
    });
  }
}

/// A pass of a rank is busy at t when one of its actions has started by t and
/// not by t - length; no two passes are.
void SynthesisModel::oneAtATime() {
  StartTimes &times = *times_;
  for (int64_t rank = 0; rank < query_.p; ++rank) {
    std::vector<StartTimes::Literal> busy[3];
    int64_t begin = earliest_[index(rank, 0, 0)];
    int64_t end =
        latest_[index(rank, 2, query_.m - 1)] + query_.lengths[rank][2];
    for (int64_t pass = 0; pass < 3; ++pass) {
      int64_t length = query_.lengths[rank][pass];
      for (int64_t t = begin; t < end && length > 0; ++t) {
        busy[pass].push_back(times.variable("busy" + std::to_string(rank) +
                                            "FIW"[pass] + "@" +
                                            std::to_string(t)));
        for (int64_t i = 0; i < query_.m; ++i) {
          StartTimes::Action action = index(rank, pass, i);
          if (t < times.first(action) || t >= times.last(action) + length)
            continue;
          times.clause({StartTimes::negation(times.by(action, t)),
                        times.by(action, t - length), busy[pass].back()});
        }
      }
    }
    for (int64_t a = 0; a < 3; ++a)
      for (int64_t b = 0; b < a; ++b)
        for (size_t t = 0; t < std::min(busy[a].size(), busy[b].size()); ++t)
          times.clause({StartTimes::negation(busy[a][t]),
                        StartTimes::negation(busy[b][t])});
  }
}

/// Repeat's definition: as many micro-batches of each pass have started by any
/// t shortly before the end of the block as by t - length, plus
/// `microBatches`.
void SynthesisModel::repeatBlock() {
  StartTimes &times = *times_;
  auto [block, begin, length, guard] = *repeat_;
  for (int64_t row = 0; row < 3 * query_.p; ++row)
    for (int64_t t = begin - guard - 1; t < begin; ++t)
      for (int64_t i = -block; i < query_.m; ++i) {
        auto now = i < 0 ? StartTimes::kTrue : times.by(row * query_.m + i, t);
        auto then = i + block >= query_.m
                        ? StartTimes::kFalse
                        : times.by(row * query_.m + i + block, t + length);
        times.clause({StartTimes::negation(now), then});
        times.clause({now, StartTimes::negation(then)});
      }
}

SynthesisModel::SynthesisModel(const UnitQuery &query, int64_t value,
                               std::optional<Repeat> repeat)
    : query_(query), repeat_(std::move(repeat)),
      times_(std::make_unique<StartTimes>(StartTimes::Style::Folded)) {
  earliest();
  latest(value);
  for (size_t action = 0; action < earliest_.size(); ++action)
    if (earliest_[action] > latest_[action]) {
      possible_ = false;
      return;
    }
  for (int64_t rank = 0; rank < query_.p; ++rank)
    for (int64_t pass = 0; pass < 3; ++pass)
      for (int64_t i = 0; i < query_.m; ++i)
        times_->add(std::to_string(rank) + "FIW"[pass] + std::to_string(i),
                    earliest_[index(rank, pass, i)],
                    latest_[index(rank, pass, i)]);
  forDependencies([&](int64_t later, int64_t earlier, int64_t delay) {
    times_->after(later, earlier, delay);
  });
  if (query_.goal == SynthesisGoal::Span)
    for (int64_t rank = 0; rank < query_.p; ++rank)
      times_->after(index(rank, 0, 0), index(rank, 2, query_.m - 1),
                    query_.lengths[rank][2] - value);
  oneAtATime();
  if (repeat_)
    repeatBlock();
}

StartTable SynthesisModel::table() const {
  StartTable table{query_.p, query_.m, {}, {}};
  table.whole.assign(query_.p * query_.m, 0);
  for (int64_t i = 0; i < 3 * query_.p * query_.m; ++i)
    table.starts.push_back(times_->start(i));
  return table;
}
