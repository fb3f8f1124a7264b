//===- UnitSchedules.cpp - schedules in whole units of time ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Checker.h"
#include "passes/search/schedule/Synthesize.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::search;
using model::StageDurations;

UnitQuery search::inUnits(const SynthesisQuery &query) {
  RECKON_CHECK(query.p >= 1 && query.m >= 1 &&
               std::ssize(query.durations) == query.p &&
               std::ssize(query.slots) == query.p);
  UnitQuery made{query.p, query.m, {}, 0, query.slots, query.goal};
  for (int64_t slots : query.slots)
    RECKON_CHECK(slots >= 1);
  Ticks ticks = inTicks(query.durations, query.transfer);
  double longest = 0;
  for (const StageDurations &rank : query.durations)
    for (char pass : {'F', 'I', 'W'})
      longest = std::max(longest, rank.of(pass));
  double units = static_cast<double>(query.units);
  made.unit = longest > 0 ? longest / units : 1;
  if (ticks.exact && longest <= units * ticks.length * (1 + 1e-9)) {
    made.unit = ticks.length;
    made.exact = true;
  }
  auto whole = [&](double time) {
    auto count = std::llround(time / made.unit);
    return static_cast<int64_t>(time > 0 ? std::max(1LL, count) : 0);
  };
  for (const StageDurations &rank : query.durations)
    made.lengths.push_back(
        {whole(rank.of('F')), whole(rank.of('I')), whole(rank.of('W'))});
  // A transfer shorter than half a unit is none.
  made.transfer = std::llround(query.transfer / made.unit);
  return made;
}

int64_t search::simpleBound(const UnitQuery &query) {
  int64_t bound = 0, head = 0, forwards = 0;
  for (int64_t rank = 0; rank < query.p; ++rank) {
    bound =
        std::max(bound, query.work(rank) +
                            (query.goal == SynthesisGoal::Makespan ? head : 0));
    head += query.lengths[rank][0] + query.transfer;
  }
  // A slot of rank r is taken at F and free again after the micro-batch has
  // been through all later ranks and back, and W.
  for (int64_t rank = query.p - 1; rank >= 0; --rank) {
    const auto &[f, i, w] = query.lengths[rank];
    forwards += f + i + (rank + 1 < query.p ? 2 * query.transfer : 0);
    int64_t roundTrip = forwards + w;
    int64_t turns = (query.m - 1) / query.slots[rank];
    bound = std::max(bound, (turns + 1) * roundTrip);
  }
  return bound;
}

StartTable search::greedySchedule(const UnitQuery &query) {
  int64_t p = query.p, m = query.m;
  StartTable table{p, m, std::vector<int64_t>(3 * p * m, -1),
                   std::vector<char>(p * m, 0)};
  auto at = [&](int64_t rank, int64_t pass, int64_t i) -> int64_t & {
    return table.starts[(rank * 3 + pass) * m + i];
  };
  std::vector<std::array<int64_t, 3>> next(p, {0, 0, 0});
  std::vector<int64_t> freeAt(p, 0);
  auto endOf = [&](int64_t rank, int64_t pass, int64_t i) {
    return at(rank, pass, i) + query.lengths[rank][pass];
  };
  /// When the next action of a pass could start, or -1 when not known yet.
  auto ready = [&](int64_t rank, int64_t pass) -> int64_t {
    int64_t i = next[rank][pass];
    if (i >= m)
      return -1;
    if (pass == 0) {
      int64_t slot = i - query.slots[rank];
      if (slot >= 0 && slot >= next[rank][2])
        return -1;
      if (rank == 0)
        return 0;
      return i < next[rank - 1][0] ? endOf(rank - 1, 0, i) + query.transfer
                                   : -1;
    }
    if (i >= next[rank][pass - 1])
      return -1;
    int64_t own = endOf(rank, pass - 1, i);
    if (pass == 2 || rank + 1 == p)
      return own;
    return i < next[rank + 1][1]
               ? std::max(own, endOf(rank + 1, 1, i) + query.transfer)
               : -1;
  };
  int64_t left = 3 * p * m;
  for (int64_t now = 0; left > 0; ++now)
    for (bool changed = true; changed;) {
      changed = false;
      for (int64_t rank = 0; rank < p; ++rank) {
        if (freeAt[rank] > now)
          continue;
        for (int64_t pass : {1, 0, 2}) {
          int64_t when = ready(rank, pass);
          if (when < 0 || when > now)
            continue;
          at(rank, pass, next[rank][pass]++) = now;
          freeAt[rank] = now + query.lengths[rank][pass];
          --left;
          changed = true;
          break;
        }
      }
    }
  return table;
}

int64_t search::goalOf(const UnitQuery &query, const StartTable &table) {
  int64_t value = 0;
  for (int64_t rank = 0; rank < query.p; ++rank) {
    int64_t first = table.row(rank, 0)[0], last = 0;
    for (int64_t pass = 0; pass < 3; ++pass)
      for (int64_t i = 0; i < query.m; ++i)
        last = std::max(last,
                        table.row(rank, pass)[i] + query.lengths[rank][pass]);
    value = std::max(
        value, query.goal == SynthesisGoal::Makespan ? last : last - first);
  }
  return value;
}

Status search::checkUnits(const UnitQuery &query, const StartTable &table) {
  model::ClaimTerms terms;
  model::ScheduleClaim claim{query.p, query.p, query.m, {}};
  for (int64_t rank = 0; rank < query.p; ++rank) {
    auto [f, i, w] = query.lengths[rank];
    terms.durations.push_back({static_cast<double>(f),
                               static_cast<double>(i + w),
                               static_cast<double>(w)});
    terms.rankOfStage.push_back(rank);
    for (int64_t pass = 0; pass < 3; ++pass)
      for (int64_t mb = 0; mb < query.m; ++mb) {
        auto start = static_cast<double>(table.row(rank, pass)[mb]);
        claim.actions.push_back(
            {rank, rank, "FIW"[pass], mb, start,
             start + static_cast<double>(query.lengths[rank][pass])});
      }
  }
  terms.transfer = static_cast<double>(query.transfer);
  terms.slots = query.slots;
  terms.tolerance = 0;
  auto value = static_cast<double>(goalOf(query, table));
  (query.goal == SynthesisGoal::Makespan ? terms.horizon : terms.span) = value;
  return model::checkClaim(claim, terms);
}

model::PipelineOrders search::ordersOf(const UnitQuery &query,
                                       const StartTable &table) {
  model::PipelineOrders orders;
  orders.p = query.p;
  orders.m = query.m;
  for (int64_t rank = 0; rank < query.p; ++rank) {
    orders.stageOfChunk.push_back(rank);
    std::vector<std::array<int64_t, 3>> rows; // start, pass, micro-batch
    for (int64_t pass = 0; pass < 3; ++pass)
      for (int64_t i = 0; i < query.m; ++i)
        rows.push_back({table.row(rank, pass)[i], pass, i});
    std::sort(rows.begin(), rows.end());
    auto &order = orders.ranks.emplace_back();
    for (const auto &[start, pass, i] : rows) {
      // On the first rank nobody waits for the input gradient alone.
      if (rank == 0 && pass == 2 && !order.empty() &&
          order.back() == model::ComputeAction{'I', i, 0})
        order.back().pass = 'B';
      else
        order.push_back({"FIW"[pass], i, 0});
    }
  }
  orders.indexStages();
  return orders;
}
