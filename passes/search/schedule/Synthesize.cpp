//===- Synthesize.cpp - schedules made by the solver ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Synthesize.h"

#include "passes/search/schedule/SynthesisCache.h"
#include "passes/search/schedule/SynthesisModel.h"

#include <algorithm>
#include <cstdio>

using namespace reckon;
using namespace reckon::search;
using model::PipelineOrders;
using model::ScheduleKind;
using model::ScheduleShape;
using model::StageDurations;
using model::Timetable;

namespace {

/// Actions times units of time that the solver is asked about at once.
constexpr int64_t kLargest = 150000;
/// Of the whole budget, what one question may take.
constexpr uint64_t kQuestions = 4;

/// A named schedule in units, each rank as early as its order allows.
StartTable unitTable(const UnitQuery &query, const PipelineOrders &orders) {
  std::vector<StageDurations> durations;
  for (auto [f, i, w] : query.lengths)
    durations.push_back({static_cast<double>(f), static_cast<double>(i + w),
                         static_cast<double>(w)});
  Result<Timetable> table = model::simulateOrders(
      orders, durations, static_cast<double>(query.transfer));
  RECKON_CHECK(table.ok());
  StartTable made = startTable(orders, *table);
  for (int64_t rank = 0; rank < query.p; ++rank)
    for (int64_t i = 0; i < query.m; ++i)
      if (made.whole[rank * query.m + i]) { // I, then W
        made.starts[(rank * 3 + 2) * query.m + i] += query.lengths[rank][1];
        made.whole[rank * query.m + i] = 0;
      }
  return made;
}

class Synthesizer {
public:
  Synthesizer(const SynthesisQuery &query, const std::string &cacheFolder)
      : query_(query), folder_(cacheFolder), unit_(inUnits(query)),
        budget_(query.budget) {}

  Synthesis run() {
    result_.unit = unit_.unit;
    result_.exact = unit_.exact;
    result_.bound = simpleBound(unit_);
    compareNamed();
    offer(greedySchedule(unit_), "rules");
    if (!result_.optimal() && !load()) {
      if (3 * unit_.p * unit_.m * result_.value <= kLargest)
        solveWhole();
      else
        solveRepeating();
      store();
    }
    finish();
    return std::move(result_);
  }

private:
  /// Takes a schedule if the checker accepts it and it is better.
  bool offer(StartTable table, const std::string &method) {
    int64_t value = goalOf(unit_, table);
    if (result_.value && value >= result_.value)
      return false;
    Status status = checkUnits(unit_, table);
    RECKON_CHECK(status.ok());
    result_.table = std::move(table);
    result_.value = value;
    result_.method = method;
    return true;
  }

  void compareNamed() {
    for (ScheduleKind kind : {ScheduleKind::OneFOneB, ScheduleKind::ZbH1,
                              ScheduleKind::ZbH2, ScheduleKind::GPipe}) {
      ScheduleShape shape{kind, unit_.p, 1, unit_.m};
      NamedResult named{kind, true};
      for (int64_t rank = 0; rank < unit_.p; ++rank)
        named.fits &= model::inFlight(shape, rank).peak <= unit_.slots[rank];
      PipelineOrders orders = model::makeOrders(shape);
      StartTable table = unitTable(unit_, orders);
      named.value = goalOf(unit_, table);
      named.makespan =
          model::scheduleMakespan(shape, query_.durations, query_.transfer);
      if (named.fits)
        offer(std::move(table), model::scheduleName(kind));
      result_.named.push_back(named);
    }
  }

  StartTimes::Answer ask(SynthesisModel &model) {
    if (!model.possible())
      return StartTimes::Answer::No;
    uint64_t left = budget_ - std::min(budget_, result_.steps);
    if (left == 0)
      return StartTimes::Answer::Unknown;
    model.times().setBudget(std::min(left, query_.budget / kQuestions));
    StartTimes::Answer answer = model.times().check();
    result_.steps += model.times().steps();
    ++result_.checks;
    return answer;
  }

  /// The least value in [low, high] for which `solve(value)` says Yes, by
  /// asking about the lowest first, which often is the answer, and then
  /// bisecting. Values about which the budget runs out are left open.
  /// `refuted(value)` hears of every No.
  template <typename Solve, typename Refuted>
  void lowest(int64_t low, int64_t high, Solve solve, Refuted refuted) {
    int64_t ask = low;
    while (low <= high) {
      int64_t reached = 0;
      StartTimes::Answer answer = solve(ask, reached);
      if (answer == StartTimes::Answer::Yes) {
        high = reached - 1;
      } else {
        if (answer == StartTimes::Answer::No)
          refuted(ask);
        low = ask + 1;
      }
      ask = low + (high - low) / 2;
    }
  }

  void solveWhole() {
    result_.instance = unit_.m;
    lowest(
        result_.bound, result_.value - 1,
        [&](int64_t value, int64_t &reached) {
          SynthesisModel model(unit_, value);
          StartTimes::Answer answer = ask(model);
          if (answer == StartTimes::Answer::Yes) {
            RECKON_CHECK(offer(model.table(), "solver"));
            reached = result_.value;
          }
          return answer;
        },
        [&](int64_t value) {
          // No holds for all smaller values too.
          result_.bound = std::max(result_.bound, value + 1);
        });
  }

  /// From start to end of a micro-batch that nothing delays.
  int64_t roundTrip(int64_t rank) const {
    int64_t time = unit_.lengths[rank][2];
    for (int64_t r = rank; r < unit_.p; ++r)
      time += unit_.lengths[r][0] + unit_.lengths[r][1] +
              (r + 1 < unit_.p ? 2 * unit_.transfer : 0);
    return time;
  }

  /// Warm-up, a block of a few micro-batches, and cool-down of a shorter step;
  /// the block is then repeated (Tessel's idea). Blocks that no rank waits in
  /// come first, then longer ones.
  void solveRepeating() {
    for (int64_t extra = 0; extra <= 2; ++extra)
      for (int64_t block = 1; block <= 3 && !result_.optimal(); ++block)
        solveBlock(block, extra);
  }

  void solveBlock(int64_t block, int64_t extra) {
    int64_t length = 0, guard = 0;
    for (int64_t rank = 0; rank < unit_.p; ++rank) {
      auto [f, i, w] = unit_.lengths[rank];
      int64_t turn = block * roundTrip(rank), slots = unit_.slots[rank];
      length =
          std::max({length, block * (f + i + w), (turn + slots - 1) / slots});
      guard = std::max({guard, f, i, w});
    }
    guard += unit_.transfer;
    length = std::max(length, guard) + extra;
    int64_t begin = roundTrip(0) + guard;
    int64_t fewer = begin / length * block + block + unit_.p;
    if (fewer >= unit_.m)
      return;
    fewer += (unit_.m - fewer) % block;
    UnitQuery shorter = unit_;
    shorter.m = fewer;
    int64_t runs = (unit_.m - fewer) / block;
    int64_t low = simpleBound(shorter);
    int64_t high = result_.value - 1 - runs * length;
    // More time than this before and after the block helps nobody.
    high = std::min(high, 2 * low);
    if (low > high || 3 * unit_.p * fewer * high > kLargest)
      return;
    Repeat repeat{block, begin, length, guard};
    auto solve = [&](int64_t value, int64_t &reached) {
      SynthesisModel model(shorter, value, repeat);
      StartTimes::Answer answer = ask(model);
      if (answer == StartTimes::Answer::Yes) {
        StartTable table = model.table();
        RECKON_CHECK(inOrder(table) && repeats(table, repeat));
        reached = goalOf(shorter, table);
        if (offer(repeated(table, repeat, runs), "repeating block"))
          result_.instance = fewer;
      }
      return answer;
    };
    // Whether there is such a block at all.
    int64_t reached = 0;
    if (solve(high, reached) == StartTimes::Answer::Yes)
      lowest(low, reached - 1, solve, [](int64_t) {});
  }

  bool load() {
    if (folder_.empty())
      return false;
    auto kept = loadSchedule(unit_, budget_, folder_);
    if (!kept)
      return false;
    offer(std::move(kept->table), kept->method);
    result_.bound = kept->bound;
    result_.instance = kept->instance;
    result_.steps = kept->steps;
    result_.checks = kept->checks;
    return result_.fromCache = true;
  }

  void store() const {
    if (!folder_.empty())
      storeSchedule(unit_, budget_,
                    {result_.table, result_.bound, result_.method,
                     result_.instance, result_.steps, result_.checks},
                    folder_);
  }

  /// Orders, and their time with the durations as given. Rounding may have
  /// made a named schedule look worse than it is: then that is the answer.
  void finish() {
    result_.orders = ordersOf(unit_, result_.table);
    auto simulate = [&] {
      Result<Timetable> table =
          model::simulateOrders(result_.orders, query_.durations,
                                query_.transfer, /*keepActions=*/false);
      RECKON_CHECK(table.ok());
      result_.makespan = table->makespan;
      result_.bubble = table->bubbleFraction;
    };
    simulate();
    if (unit_.exact || unit_.goal != SynthesisGoal::Makespan)
      return;
    for (const NamedResult &named : result_.named)
      if (named.fits && named.makespan < result_.makespan * (1 - 1e-9)) {
        result_.orders = model::makeOrders({named.kind, unit_.p, 1, unit_.m});
        result_.table = unitTable(unit_, result_.orders);
        result_.value = named.value;
        result_.method = model::scheduleName(named.kind);
        simulate();
      }
  }

  const SynthesisQuery &query_;
  const std::string &folder_;
  UnitQuery unit_;
  uint64_t budget_;
  Synthesis result_;
};

} // namespace

Synthesis search::synthesize(const SynthesisQuery &query,
                             const std::string &cacheFolder) {
  return Synthesizer(query, cacheFolder).run();
}

std::string search::synthesisSmtLib(const SynthesisQuery &query,
                                    int64_t value) {
  UnitQuery unit = inUnits(query);
  SynthesisModel model(unit, value);
  std::string comment =
      "Is there a schedule of " + std::to_string(unit.p) + " ranks and " +
      std::to_string(unit.m) + " micro-batches whose " +
      (unit.goal == SynthesisGoal::Makespan ? "makespan"
                                            : "span of each rank") +
      " is at most " + std::to_string(value) +
      " units?\n1F2@30: rank 1 has started the forward of micro-batch 2 by 30.";
  return model.times().smtLib(
      model.possible() ? std::vector<StartTimes::Literal>{}
                       : std::vector<StartTimes::Literal>{StartTimes::kFalse},
      comment);
}

std::string search::describe(const SynthesisQuery &query,
                             const Synthesis &made) {
  char line[200];
  const char *goal =
      query.goal == SynthesisGoal::Makespan ? "makespan" : "span of a rank";
  if (made.optimal())
    std::snprintf(line, sizeof line, "%s %lld units: optimal%s (by %s)\n", goal,
                  static_cast<long long>(made.value),
                  made.exact ? "" : " for durations rounded to units",
                  made.method.c_str());
  else
    std::snprintf(line, sizeof line,
                  "%s %lld units: within %.2f %%, bound %lld (by %s)\n", goal,
                  static_cast<long long>(made.value),
                  100.0 * static_cast<double>(made.value - made.bound) /
                      static_cast<double>(made.bound),
                  static_cast<long long>(made.bound), made.method.c_str());
  std::string text = line;
  std::snprintf(line, sizeof line, "  %-12s %10s %14s\n", "schedule", "units",
                "makespan");
  text += line;
  std::snprintf(line, sizeof line, "  %-12s %10lld %14.6g\n", "synthesized",
                static_cast<long long>(made.value), made.makespan);
  text += line;
  for (const NamedResult &named : made.named) {
    std::snprintf(line, sizeof line, "  %-12s %10lld %14.6g%s\n",
                  model::scheduleName(named.kind),
                  static_cast<long long>(named.value), named.makespan,
                  named.fits ? "" : "  needs more slots");
    text += line;
  }
  return text;
}
