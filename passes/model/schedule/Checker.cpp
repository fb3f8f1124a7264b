//===- Checker.cpp - an independent judge of schedules --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/schedule/Checker.h"

#include <algorithm>
#include <cstdio>

using namespace reckon;
using namespace reckon::model;

namespace {

std::string show(double time) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", time);
  return buffer;
}

std::string show(const ClaimedAction &action) {
  return std::to_string(action.stage) + action.pass +
         std::to_string(action.microBatch);
}

class Judge {
public:
  Judge(const ScheduleClaim &claim, const ClaimTerms &terms)
      : claim_(claim), terms_(terms),
        slack_(terms.tolerance * std::max(1.0, terms.horizon.value_or(1.0))) {}

  Status judge() {
    RECKON_TRY(each());
    RECKON_TRY(complete());
    RECKON_TRY(inputs());
    RECKON_TRY(oneAtATime());
    RECKON_TRY(held());
    return limits();
  }

private:
  static Error wrong(const std::string &expected, const std::string &got) {
    return makeError(ExitCode::Internal,
                     "expected " + expected + ", got " + got +
                         "; this schedule must not be used");
  }

  /// The action of a pass, or null.
  const ClaimedAction *&at(char pass, int64_t stage, int64_t microBatch) {
    int64_t kind = pass == 'F' ? 0 : pass == 'B' ? 1 : pass == 'I' ? 2 : 3;
    return index_[(kind * claim_.stages + stage) * claim_.microBatches +
                  microBatch];
  }

  /// Names, place and length of single actions; none twice.
  Status each() {
    index_.assign(4 * claim_.stages * claim_.microBatches, nullptr);
    auto stages = static_cast<size_t>(claim_.stages);
    if (terms_.rankOfStage.size() != stages ||
        terms_.durations.size() != stages)
      return wrong("a rank and durations of " + std::to_string(stages) +
                       " stages",
                   std::to_string(terms_.rankOfStage.size()) + " and " +
                       std::to_string(terms_.durations.size()));
    for (const ClaimedAction &action : claim_.actions) {
      char pass = action.pass;
      if (action.stage < 0 || action.stage >= claim_.stages ||
          action.microBatch < 0 || action.microBatch >= claim_.microBatches ||
          (pass != 'F' && pass != 'B' && pass != 'I' && pass != 'W'))
        return wrong("a pass of " + std::to_string(stages) + " stages on " +
                         std::to_string(claim_.microBatches) + " micro-batches",
                     show(action));
      int64_t rank = terms_.rankOfStage[action.stage];
      if (action.rank != rank || rank < 0 || rank >= claim_.ranks)
        return wrong(show(action) + " on rank " + std::to_string(rank),
                     "rank " + std::to_string(action.rank));
      double length = terms_.durations[action.stage].of(pass);
      if (std::abs(action.end - action.start - length) > slack_)
        return wrong(show(action) + " to take " + show(length),
                     show(action.end - action.start));
      if (action.start < -slack_)
        return wrong(show(action) + " to start at 0 or later",
                     show(action.start));
      const ClaimedAction *&seen = at(pass, action.stage, action.microBatch);
      if (seen)
        return wrong(show(action) + " once", "it twice");
      seen = &action;
    }
    return Status::success();
  }

  Status complete() {
    for (int64_t stage = 0; stage < claim_.stages; ++stage)
      for (int64_t i = 0; i < claim_.microBatches; ++i) {
        bool whole = at('B', stage, i), input = at('I', stage, i);
        bool weight = at('W', stage, i);
        if (at('F', stage, i) && (whole ? !input && !weight : input && weight))
          continue;
        return wrong("F and either B or I and W of stage " +
                         std::to_string(stage) + " on micro-batch " +
                         std::to_string(i),
                     "not these");
      }
    return Status::success();
  }

  Status follows(const ClaimedAction &later, const ClaimedAction &earlier) {
    double transfer = later.rank == earlier.rank ? 0 : terms_.transfer;
    if (later.start >= earlier.end + transfer - slack_)
      return Status::success();
    return wrong(show(later) + " at " + show(earlier.end + transfer) +
                     " or later, when " + show(earlier) + " is there",
                 show(later.start));
  }

  Status inputs() {
    for (int64_t stage = 0; stage < claim_.stages; ++stage)
      for (int64_t i = 0; i < claim_.microBatches; ++i) {
        const ClaimedAction &forward = *at('F', stage, i);
        const ClaimedAction *whole = at('B', stage, i);
        const ClaimedAction &input = whole ? *whole : *at('I', stage, i);
        if (stage > 0)
          RECKON_TRY(follows(forward, *at('F', stage - 1, i)));
        RECKON_TRY(follows(input, forward));
        if (stage + 1 < claim_.stages) {
          const ClaimedAction *above = at('B', stage + 1, i);
          RECKON_TRY(follows(input, above ? *above : *at('I', stage + 1, i)));
        }
        if (!whole)
          RECKON_TRY(follows(*at('W', stage, i), input));
      }
    return Status::success();
  }

  Status oneAtATime() {
    byRank_.resize(claim_.ranks);
    for (const ClaimedAction &action : claim_.actions)
      byRank_[action.rank].push_back(&action);
    for (auto &row : byRank_) {
      std::stable_sort(row.begin(), row.end(),
                       [](auto *a, auto *b) { return a->start < b->start; });
      for (size_t i = 1; i < row.size(); ++i)
        if (row[i]->start < row[i - 1]->end - slack_)
          return wrong(
              "one action at a time on rank " + std::to_string(row[i]->rank),
              show(*row[i]) + " at " + show(row[i]->start) + " while " +
                  show(*row[i - 1]) + " runs until " + show(row[i - 1]->end));
    }
    return Status::success();
  }

  Status held() {
    if (terms_.slots.empty())
      return Status::success();
    for (int64_t rank = 0; rank < claim_.ranks; ++rank) {
      // In order of starts, a stash is taken at F and given back by the end of
      // W or B, which is before the next start.
      int64_t live = 0;
      for (const ClaimedAction *action : byRank_[rank]) {
        live += action->pass == 'F' ? 1 : 0;
        if (live > terms_.slots[rank])
          return wrong("at most " + std::to_string(terms_.slots[rank]) +
                           " stashes on rank " + std::to_string(rank),
                       std::to_string(live) + " in " + show(*action) + " at " +
                           show(action->start));
        live -= action->pass == 'B' || action->pass == 'W' ? 1 : 0;
      }
    }
    return Status::success();
  }

  Status limits() {
    for (const auto &row : byRank_) {
      if (row.empty())
        continue;
      double last = 0;
      for (const ClaimedAction *action : row)
        last = std::max(last, action->end);
      if (terms_.horizon && last > *terms_.horizon + slack_)
        return wrong("rank " + std::to_string(row[0]->rank) + " to end by " +
                         show(*terms_.horizon),
                     show(last));
      if (terms_.span && last - row[0]->start > *terms_.span + slack_)
        return wrong("rank " + std::to_string(row[0]->rank) +
                         " to span at most " + show(*terms_.span),
                     show(last - row[0]->start));
    }
    return Status::success();
  }

  const ScheduleClaim &claim_;
  const ClaimTerms &terms_;
  double slack_;
  std::vector<const ClaimedAction *> index_;
  std::vector<std::vector<const ClaimedAction *>> byRank_;
};

} // namespace

ScheduleClaim model::claimOf(const PipelineOrders &orders,
                             const Timetable &table) {
  ScheduleClaim claim{orders.p, orders.stages(), orders.m, {}};
  for (int64_t rank = 0; rank < orders.p; ++rank)
    for (const TimedAction &timed : table.ranks[rank])
      claim.actions.push_back({rank, orders.stage(rank, timed.action.chunk),
                               timed.action.pass, timed.action.microBatch,
                               timed.start, timed.end});
  return claim;
}

Status model::checkClaim(const ScheduleClaim &claim, const ClaimTerms &terms) {
  return Judge(claim, terms).judge();
}

double model::claimBubble(const ScheduleClaim &claim) {
  std::vector<double> work(claim.ranks, 0);
  double last = 0;
  for (const ClaimedAction &action : claim.actions) {
    work[action.rank] += action.end - action.start;
    last = std::max(last, action.end);
  }
  double busiest = *std::max_element(work.begin(), work.end());
  return busiest > 0 ? (last - busiest) / busiest : 0;
}
