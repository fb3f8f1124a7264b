//===- Master.cpp - layouts as ordered Booleans for Z3 --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/assign/Master.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

/// Steps of the solver in one proposal: a count, so that the answer does not
/// hang on the machine's load.
static constexpr uint64_t kSteps = 300000;

Master::Master(const Frame &frame)
    : stages_(frame.stages()), layers_(frame.layers()) {
  for (int64_t k = 0; k < stages_; ++k) {
    least_.push_back(frame.least(k));
    most_.push_back(frame.most(k));
  }
  // From the front and from the back.
  low_.assign(1, 0), high_.assign(1, 0);
  for (size_t k = 0; k < least_.size(); ++k) {
    low_.push_back(low_.back() + least_[k]);
    high_.push_back(high_.back() + most_[k]);
  }
  possible_ = low_.back() <= layers_ && layers_ <= high_.back();
  if (!possible_)
    return;
  int64_t restLow = 0, restHigh = 0;
  for (size_t k = least_.size() + 1; k-- > 0;) {
    low_[k] = std::max(low_[k], layers_ - restHigh);
    high_[k] = std::min(high_[k], layers_ - restLow);
    if (k > 0) {
      restLow += least_[k - 1];
      restHigh += most_[k - 1];
    }
  }
  times_.setBudget(kSteps);
  for (int64_t k = 0; k <= stages_; ++k)
    boundary_.push_back(times_.add("layers before stage " + std::to_string(k),
                                   low_[index(k)], high_[index(k)]));
  for (int64_t k = 0; k < stages_; ++k) {
    times_.after(boundary_[index(k + 1)], boundary_[index(k)],
                 least_[index(k)]);
    times_.after(boundary_[index(k)], boundary_[index(k + 1)],
                 -most_[index(k)]);
  }
}

Master::Answer Master::propose() {
  switch (times_.check()) {
  case StartTimes::Answer::Yes:
    return Answer::Layout;
  case StartTimes::Answer::No:
    return Answer::None;
  case StartTimes::Answer::Unknown:
    break;
  }
  return Answer::Unknown;
}

int64_t Master::before(int64_t stage) const {
  return times_.start(boundary_[index(stage)]);
}

Master::Literal Master::by(int64_t stage, int64_t n) const {
  return times_.by(boundary_[index(stage)], n);
}

Master::Literal Master::holds(int64_t stage, int64_t n) {
  if (n <= least_[index(stage)])
    return StartTimes::kTrue;
  if (n > most_[index(stage)])
    return StartTimes::kFalse;
  auto [entry, added] = known_.try_emplace({stage, n});
  if (!added)
    return entry->second;
  Literal literal = times_.variable("stage " + std::to_string(stage) + " has " +
                                    std::to_string(n));
  for (int64_t j = low_[index(stage)]; j <= high_[index(stage)]; ++j) {
    Literal fewer = by(stage + 1, j + n - 1);
    // At most j before it and more than j + n - 1 behind it ...
    times_.clause({StartTimes::negation(by(stage, j)), fewer, literal});
    // ... and only then.
    times_.clause({StartTimes::negation(literal), by(stage, j - 1),
                   StartTimes::negation(fewer)});
  }
  return entry->second = literal;
}

void Master::cut(const std::vector<Literal> &literals) {
  times_.clause(literals);
}
