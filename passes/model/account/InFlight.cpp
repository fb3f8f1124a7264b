//===- InFlight.cpp - how many stashes live at once -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/InFlight.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

namespace {

/// Interleaved 1F1B: op k of the forward is T[k]; chunks take turns in groups
/// of p micro-batches.
class Interleaved {
public:
  Interleaved(int64_t p, int64_t v, int64_t m) : p_(p), v_(v), m_(m) {}

  int64_t chunkOf(int64_t op) const {
    int64_t group = op / (p_ * v_);
    int64_t width = std::min(p_, m_ - group * p_);
    return (op - group * p_ * v_) / width;
  }

  std::vector<LiveVector> peaks(int64_t rank) const {
    int64_t ops = m_ * v_;
    int64_t warm = std::min(ops, 2 * (p_ - 1 - rank) + (v_ - 1) * p_);
    // Later groups of micro-batches repeat the same moments.
    int64_t last = std::min(ops, warm + 3 * p_ * v_);
    LiveVector live(v_, 0);
    std::vector<LiveVector> all;
    for (int64_t op = 0; op < warm; ++op)
      ++live[chunkOf(op)];
    if (warm == ops)
      all.push_back(live);
    for (int64_t op = warm; op < last; ++op) {
      ++live[chunkOf(op)];
      all.push_back(live);
      --live[v_ - 1 - chunkOf(op - warm)];
    }
    return maximal(std::move(all));
  }

private:
  static bool below(const LiveVector &a, const LiveVector &b) {
    for (size_t i = 0; i < a.size(); ++i)
      if (a[i] > b[i])
        return false;
    return true;
  }
  static std::vector<LiveVector> maximal(std::vector<LiveVector> all) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::vector<LiveVector> kept;
    for (const LiveVector &row : all)
      if (std::none_of(all.begin(), all.end(), [&](const LiveVector &other) {
            return other != row && below(row, other);
          }))
        kept.push_back(row);
    return kept;
  }

  int64_t p_, v_, m_;
};

} // namespace

std::vector<LiveVector> model::peakLiveVectors(const model::Choice &choice,
                                               int64_t rank) {
  int64_t p = choice.pp, v = choice.v, m = choice.numMicroBatches;
  switch (choice.schedule) {
  case ScheduleKind::GPipe:
  case ScheduleKind::Bfs:
    return {LiveVector(v, m)};
  case ScheduleKind::ZbH1:
    return {LiveVector(v, std::min(m, p))};
  case ScheduleKind::ZbH2:
    return {LiveVector(v, std::min(m, 2 * p - 1))};
  case ScheduleKind::ZbV:
    return {LiveVector(v, std::min(m, p))};
  case ScheduleKind::DualPipeV:
    return {LiveVector(v, std::min(m, p + 1))};
  case ScheduleKind::Interleaved:
    if (v > 1)
      return Interleaved(p, v, m).peaks(rank);
    [[fallthrough]];
  default:
    return {LiveVector(v, std::min(m, p - rank))};
  }
}
