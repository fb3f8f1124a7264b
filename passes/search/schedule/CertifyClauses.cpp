//===- CertifyClauses.cpp - a schedule's start times as clauses -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/CertifyClauses.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;
using model::ComputeAction;
using model::PipelineOrders;
using model::Timetable;

/// Actions that the solver is given with all their freedom; larger instances
/// get one candidate an action, so that it checks clauses and need not choose.
static constexpr int64_t kFreeActions = 4000;

CertifyClauses::CertifyClauses(const CertifyInstance &instance,
                               const Ticks &ticks,
                               const std::vector<int64_t> &slots,
                               int64_t horizon)
    : instance_(instance), ticks_(ticks), slots_(slots), horizon_(horizon),
      times_(StartTimes::Style::Complete) {
  number();
  encode();
}

/// Numbers all actions and fills what is known of each.
void CertifyClauses::number() {
  const PipelineOrders &orders = instance_.orders;
  int64_t count = 0;
  ids_.assign(3 * orders.stages() * orders.m, -1);
  for (int64_t rank = 0; rank < orders.p; ++rank) {
    offsets_.push_back(count);
    for (int64_t i = 0; i < std::ssize(orders.ranks[rank]); ++i, ++count) {
      const ComputeAction &action = orders.ranks[rank][i];
      int64_t stage = orders.stage(rank, action.chunk);
      lengths_.push_back(ticks_.of(stage, action.pass));
      earliest_.push_back(
          static_cast<int64_t>(instance_.earliest.ranks[rank][i].start));
      switch (action.pass) {
      case 'F':
        id(stage, 0, action.microBatch) = count;
        break;
      case 'I':
        id(stage, 1, action.microBatch) = count;
        break;
      case 'W':
        id(stage, 2, action.microBatch) = count;
        break;
      default:
        id(stage, 1, action.microBatch) = count;
        id(stage, 2, action.microBatch) = count;
      }
    }
  }
}

/// Calls body(later, earlier, delay) with numbers of actions for all that one
/// action must wait for: its input, what runs before it on its rank, and a free
/// slot.
template <typename Body> void CertifyClauses::forDependencies(Body body) const {
  const PipelineOrders &orders = instance_.orders;
  for (int64_t rank = 0; rank < orders.p; ++rank) {
    const auto &order = orders.ranks[rank];
    std::vector<int64_t> released; // by what, in order
    int64_t taken = 0;
    for (int64_t i = 0; i < std::ssize(order); ++i) {
      const ComputeAction &action = order[i];
      int64_t stage = orders.stage(rank, action.chunk);
      int64_t self = offsets_[rank] + i, mb = action.microBatch;
      auto needs = [&](int64_t from, int64_t pass) {
        int64_t earlier = id(from, pass, mb);
        int64_t transfer =
            orders.rankOfStage[from] == rank ? 0 : ticks_.transfer;
        body(self, earlier, lengths_[earlier] + transfer);
      };
      if (i > 0)
        body(self, self - 1, lengths_[self - 1]);
      if (action.pass == 'F') {
        if (stage > 0)
          needs(stage - 1, 0);
        if (!slots_.empty()) {
          int64_t free = slots_[rank] - taken++;
          // The stash that was given back first is taken first. When none has
          // been given back by now, none ever is in time.
          if (free <= 0) {
            int64_t which = -free;
            int64_t by = which < std::ssize(released) ? released[which] : -1;
            body(self, by < 0 ? self : by, by < 0 ? 1 : lengths_[by]);
          }
        }
      } else if (action.pass == 'W') {
        needs(stage, 1);
      } else {
        needs(stage, 0);
        if (stage + 1 < orders.stages())
          needs(stage + 1, 1);
      }
      if (action.pass == 'B' || action.pass == 'W')
        released.push_back(self);
    }
  }
}

/// Latest starts by the horizon, the order and the dependencies.
void CertifyClauses::latest() {
  int64_t count = std::ssize(lengths_);
  struct Edge {
    int64_t later, earlier, delay;
  };
  std::vector<Edge> edges;
  forDependencies([&](int64_t later, int64_t earlier, int64_t delay) {
    if (later != earlier)
      edges.push_back({later, earlier, delay});
  });
  // Every edge points back in time, so that one pass in the order of earliest
  // starts, latest first, settles all; stable to keep a rank's own order.
  std::stable_sort(edges.begin(), edges.end(),
                   [&](const Edge &a, const Edge &b) {
                     return earliest_[a.later] > earliest_[b.later];
                   });
  latest_.resize(count);
  for (int64_t i = 0; i < count; ++i)
    latest_[i] = horizon_ - lengths_[i];
  // Passes that take no time share a start; a few rounds settle those.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Edge &edge : edges) {
      int64_t bound = latest_[edge.later] - edge.delay;
      if (bound < latest_[edge.earlier]) {
        latest_[edge.earlier] = bound;
        changed = true;
      }
    }
  }
}

void CertifyClauses::encode() {
  const PipelineOrders &orders = instance_.orders;
  int64_t count = std::ssize(lengths_);
  bool free = count <= kFreeActions;
  if (free)
    latest();
  int64_t end = 0;
  if (instance_.repeat)
    end = instance_.repeat->begin + instance_.repeat->length;
  for (int64_t rank = 0; rank < orders.p; ++rank)
    for (int64_t i = 0; i < std::ssize(orders.ranks[rank]); ++i) {
      const ComputeAction &action = orders.ranks[rank][i];
      int64_t self = offsets_[rank] + i, at = earliest_[self];
      std::vector<int64_t> candidates{at};
      // The two ends of the block stay what they are.
      bool fixed = !free || (instance_.repeat && at < end);
      if (!fixed && latest_[self] > at)
        candidates.push_back(latest_[self]);
      int64_t stage = orders.stage(rank, action.chunk);
      times_.add(std::to_string(stage) + action.pass +
                     std::to_string(action.microBatch),
                 std::move(candidates));
    }
  forDependencies([&](int64_t later, int64_t earlier, int64_t delay) {
    times_.after(later, earlier, delay);
  });
  // All end in time.
  for (int64_t i = 0; i < count; ++i)
    times_.clause({times_.by(i, horizon_ - lengths_[i])});
  if (instance_.repeat)
    encodeRepeat();
}

/// The block is one: Repeat's definition as clauses.
void CertifyClauses::encodeRepeat() {
  const Repeat &repeat = *instance_.repeat;
  int64_t end = repeat.begin + repeat.length, m = instance_.orders.m;
  StartTable table = startTable(instance_.orders, instance_.earliest);
  for (int64_t stage = 0; stage < table.stages; ++stage)
    for (int64_t pass = 0; pass < 3; ++pass) {
      const int64_t *starts = table.row(stage, pass);
      int64_t first =
          std::lower_bound(starts, starts + m, repeat.begin) - starts;
      int64_t past = first + repeat.microBatches;
      // Exactly `microBatches` start in the block.
      auto bounded = [&](int64_t i, int64_t time) {
        if (i > 0)
          times_.clause({times_.by(id(stage, pass, i - 1), time - 1)});
        if (i < m)
          times_.clause(
              {StartTimes::negation(times_.by(id(stage, pass, i), time - 1))});
      };
      bounded(first, repeat.begin);
      bounded(past, end);
      for (int64_t i = first - 1;
           i >= 0 && starts[i] >= repeat.begin - repeat.guard; --i)
        times_.shifted(id(stage, pass, i + repeat.microBatches),
                       id(stage, pass, i), repeat.length);
    }
}

Timetable CertifyClauses::found() const {
  Timetable found = instance_.earliest;
  for (int64_t rank = 0; rank < instance_.orders.p; ++rank)
    for (int64_t i = 0; i < std::ssize(found.ranks[rank]); ++i) {
      int64_t self = offsets_[rank] + i, start = times_.start(self);
      found.ranks[rank][i].start = static_cast<double>(start);
      found.ranks[rank][i].end = static_cast<double>(start + lengths_[self]);
    }
  return found;
}
