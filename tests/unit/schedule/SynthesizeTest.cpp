//===- SynthesizeTest.cpp - optima of small pipelines ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/Synthesize.h"

#include "passes/model/schedule/Checker.h"

#include "Replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

using namespace reckon;
using namespace reckon::model;
using namespace reckon::search;

namespace {

using Goal = SynthesisGoal;

/// F = I = W = 1 unless durations follow.
SynthesisQuery query(int64_t p, int64_t m, int64_t slots, Goal goal,
                     std::vector<StageDurations> durations = {}) {
  SynthesisQuery made;
  made.p = p;
  made.m = m;
  made.goal = goal;
  made.slots.assign(p, slots);
  made.durations = std::move(durations);
  if (made.durations.empty())
    made.durations.resize(p);
  return made;
}

//===----------------------------------------------------------------------===//
// Brute force
//===----------------------------------------------------------------------===//

/// Walks all states of a pipeline, one unit of time after the other, and knows
/// nothing of windows, bounds or clauses. No transfers.
class BruteForce {
public:
  explicit BruteForce(const UnitQuery &query) : query_(query) {}

  /// Whether `value` of the goal can be had, and no less.
  bool isLeast(int64_t value) const {
    return reachable(value) && !reachable(value - 1);
  }

private:
  struct Rank {
    std::array<int64_t, 3> started{}, ended{};
    int64_t running = -1, left = 0, since = 0; ///< since its first start
    auto operator<=>(const Rank &) const = default;
  };
  using State = std::vector<Rank>;

  bool done(const State &state) const {
    for (const Rank &rank : state)
      if (rank.ended[2] < query_.m)
        return false;
    return true;
  }

  bool mayStart(const State &state, int64_t r, int64_t pass) const {
    const Rank &rank = state[r];
    int64_t i = rank.started[pass];
    if (i >= query_.m)
      return false;
    if (pass == 0)
      return i - rank.ended[2] < query_.slots[r] &&
             (r == 0 || state[r - 1].ended[0] > i);
    return rank.ended[pass - 1] > i &&
           (pass == 2 || r + 1 == query_.p || state[r + 1].ended[1] > i);
  }

  /// All states after what may start at one moment has or has not started.
  void choose(State &state, int64_t r, std::set<State> &out) const {
    if (r == query_.p) {
      out.insert(state);
      return;
    }
    choose(state, r + 1, out);
    if (state[r].running >= 0)
      return;
    for (int64_t pass = 0; pass < 3; ++pass)
      if (mayStart(state, r, pass)) {
        Rank before = state[r];
        ++state[r].started[pass];
        state[r].running = pass;
        state[r].left = query_.lengths[r][pass];
        choose(state, r + 1, out);
        state[r] = before;
      }
  }

  bool reachable(int64_t value) const {
    std::set<State> now{State(query_.p)};
    // A makespan bounds all; with spans the ranks follow each other.
    int64_t end = query_.goal == Goal::Makespan ? value : value * query_.p;
    for (int64_t t = 0; t < end; ++t) {
      std::set<State> next;
      for (State state : now) {
        std::set<State> chosen;
        choose(state, 0, chosen);
        for (State after : chosen) {
          bool late = false;
          for (Rank &rank : after) {
            if (rank.started[0] && rank.ended[2] < query_.m)
              ++rank.since;
            if (rank.running >= 0 && --rank.left == 0) {
              ++rank.ended[rank.running];
              rank.running = -1;
            }
            if (query_.goal == Goal::Makespan)
              rank.since = 0;
            late |= rank.since > value;
            late |= rank.since == value && rank.ended[2] < query_.m;
          }
          if (!late)
            next.insert(after);
        }
      }
      for (const State &state : next)
        if (done(state))
          return true;
      now = std::move(next);
    }
    return false;
  }

  const UnitQuery &query_;
};

TEST(Synthesize, BruteForceAgrees) {
  std::vector<std::vector<StageDurations>> all{
      {{1, 2, 1}, {1, 2, 1}},
      {{1, 3, 1}, {2, 2, 1}},
      {{2, 3, 2}, {1, 3, 1}},
  };
  for (Goal goal : {Goal::Makespan, Goal::Span})
    for (const auto &durations : all)
      for (int64_t m : {1, 2, 3})
        for (int64_t slots : {1, 2, 3}) {
          if (m == 3 && durations[0].backward > 2) // many states
            continue;
          SynthesisQuery asked = query(2, m, slots, goal, durations);
          UnitQuery unit = inUnits(asked);
          ASSERT_TRUE(unit.exact);
          Synthesis made = synthesize(asked);
          EXPECT_TRUE(made.optimal());
          EXPECT_TRUE(BruteForce(unit).isLeast(made.value))
              << made.value << "m " << m << " slots " << slots << " first F "
              << durations[1].forward;
        }
  for (int64_t slots : {1, 2})
    for (Goal goal : {Goal::Makespan, Goal::Span}) {
      SynthesisQuery asked = query(3, 2, slots, goal);
      UnitQuery unit = inUnits(asked);
      EXPECT_TRUE(BruteForce(unit).isLeast(synthesize(asked).value));
    }
}

//===----------------------------------------------------------------------===//
// Known optima
//===----------------------------------------------------------------------===//

TEST(Synthesize, FourRanksEightMicroBatches) {
  // 24 units of work a rank; a fourth rank cannot start before 3, so that no
  // makespan is below 27. Few slots force waiting; spans of 27 and 24 at 4 and
  // 7 slots are the idle times of ZB-H1 and ZB-H2, 3 and 0.
  int64_t makespans[] = {41, 31, 27, 27, 27, 27, 27};
  int64_t spans[] = {41, 31, 27, 26, 25, 24, 24};
  for (int64_t slots = 2; slots <= 8; ++slots) {
    Synthesis makespan = synthesize(query(4, 8, slots, Goal::Makespan));
    EXPECT_EQ(makespan.value, makespans[slots - 2]) << slots;
    EXPECT_TRUE(makespan.optimal());
    Synthesis span = synthesize(query(4, 8, slots, Goal::Span));
    EXPECT_EQ(span.value, spans[slots - 2]) << slots;
    EXPECT_TRUE(span.optimal());
  }
}

TEST(Synthesize, UnequalPassesAndMessages) {
  // F 4, I 5, W 3, messages 1.
  int64_t spans[] = {126, 117, 114, 111, 108};
  for (int64_t slots = 4; slots <= 8; ++slots) {
    SynthesisQuery asked = query(4, 8, slots, Goal::Span,
                                 std::vector<StageDurations>(4, {4, 8, 3}));
    asked.transfer = 1;
    Synthesis made = synthesize(asked);
    EXPECT_EQ(made.value, spans[slots - 4]) << slots;
    EXPECT_TRUE(made.optimal());
  }
}

TEST(Synthesize, OrdersRunAsTheTableSays) {
  SynthesisQuery asked = query(4, 8, 3, Goal::Makespan);
  Synthesis made = synthesize(asked);
  EXPECT_EQ(made.method, "solver");
  EXPECT_EQ(made.makespan, 31);
  EXPECT_DOUBLE_EQ(made.bubble, 7.0 / 24);
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_LE(inFlight(made.orders.ranks[rank], 1).peak, 3);
  // As a file and back.
  Result<PipelineOrders> read =
      readScheduleCsv(scheduleCsv(made.orders), "s.csv");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->ranks, made.orders.ranks);
  // 1F1B and ZB-H1 need 4 slots on some rank.
  for (const NamedResult &named : made.named)
    EXPECT_FALSE(named.fits) << scheduleName(named.kind);
  std::string text = describe(asked, made);
  EXPECT_NE(text.find("makespan 31 units: optimal (by solver)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("needs more slots"), std::string::npos) << text;
}

// Whatever the sizes, the slots and the messages: the table in units, and the
// orders in the durations as given, pass the checker, within the slots.
TEST(Synthesize, EveryScheduleOfAGridIsJudged) {
  int made = 0;
  for (int64_t p : {1, 2, 3, 4})
    for (int64_t m : {1, 2, 5, 8})
      for (int64_t slots : {1, 2, 4, 7})
        for (double transfer : {0.0, 0.3})
          for (Goal goal : {Goal::Makespan, Goal::Span}) {
            std::vector<StageDurations> durations;
            for (int64_t rank = 0; rank < p; ++rank)
              durations.push_back({1 + 0.25 * static_cast<double>(rank % 2),
                                   2.5,
                                   1 - 0.25 * static_cast<double>(rank % 3)});
            SynthesisQuery asked = query(p, m, slots, goal, durations);
            asked.transfer = transfer;
            asked.budget = 2'000'000;
            Synthesis result = synthesize(asked);
            UnitQuery unit = inUnits(asked);
            ASSERT_TRUE(checkUnits(unit, result.table).ok());
            ASSERT_GE(result.value, result.bound);
            auto table =
                simulateOrders(result.orders, durations, asked.transfer);
            ASSERT_TRUE(table.ok());
            ClaimTerms terms{.durations = durations,
                             .rankOfStage = result.orders.rankOfStage,
                             .transfer = transfer,
                             .slots = asked.slots,
                             .horizon = result.makespan};
            Status judged = checkClaim(claimOf(result.orders, *table), terms);
            ASSERT_TRUE(judged.ok()) << judged.error().message;
            ++made;
          }
  EXPECT_EQ(made, 256);
}

TEST(Synthesize, LongStepsRepeatABlock) {
  // 256 micro-batches, 5 slots, F 4, I 5, W 3, messages 1: better than any
  // named schedule that fits. 12 * 256 = 3072 units of work; the last rank
  // starts after 3 (4 + 1) = 15.
  SynthesisQuery asked = query(4, 256, 5, Goal::Makespan,
                               std::vector<StageDurations>(4, {4, 8, 3}));
  asked.transfer = 1;
  Synthesis made = synthesize(asked);
  EXPECT_EQ(made.method, "repeating block");
  EXPECT_EQ(made.bound, 3072 + 15);
  EXPECT_LE(made.value, 3093);
  EXPECT_LT(made.instance, 20);
  for (const NamedResult &named : made.named) {
    if (named.fits) {
      EXPECT_GT(named.value, made.value) << scheduleName(named.kind);
    }
  }
  EXPECT_TRUE(checkUnits(inUnits(asked), made.table).ok());
}

TEST(Synthesize, NeverWorseThanANamedScheduleThatFits) {
  // No common unit: rounding to sixths of the longest pass.
  std::vector<StageDurations> durations{{0.1, 0.2171, 0.0973},
                                        {0.1131, 0.2, 0.1},
                                        {0.1, 0.2013, 0.0871},
                                        {0.1477, 0.2511, 0.1199}};
  for (int64_t slots : {3, 4, 5, 7}) {
    SynthesisQuery asked = query(4, 12, slots, Goal::Makespan, durations);
    asked.transfer = 0.0131;
    Synthesis made = synthesize(asked);
    EXPECT_FALSE(made.exact);
    for (const NamedResult &named : made.named) {
      if (named.fits) {
        EXPECT_LE(made.makespan, named.makespan * (1 + 1e-9))
            << slots << scheduleName(named.kind);
      }
    }
  }
}

TEST(Synthesize, SameResultEveryTime) {
  SynthesisQuery asked = query(4, 8, 3, Goal::Span);
  Synthesis first = synthesize(asked), second = synthesize(asked);
  EXPECT_EQ(first.table.starts, second.table.starts);
  EXPECT_EQ(first.steps, second.steps);
  // A budget of nothing leaves a gap and says so.
  asked.budget = 1;
  Synthesis poor = synthesize(asked);
  EXPECT_FALSE(poor.optimal());
  EXPECT_GE(poor.value, 31);
  EXPECT_LE(poor.bound, 31);
  EXPECT_NE(describe(asked, poor).find("within"), std::string::npos);
}

TEST(Synthesize, KeptOnDiskAndJudgedAgain) {
  auto folder = std::filesystem::temp_directory_path() /
                ("reckon-schedules-" + std::to_string(getpid()));
  SynthesisQuery asked = query(4, 8, 3, Goal::Makespan);
  Synthesis made = synthesize(asked, folder);
  EXPECT_FALSE(made.fromCache);
  Synthesis again = synthesize(asked, folder);
  EXPECT_TRUE(again.fromCache);
  EXPECT_EQ(again.table.starts, made.table.starts);
  EXPECT_EQ(again.bound, made.bound);
  EXPECT_EQ(describe(asked, again), describe(asked, made));
  // Another query has another file.
  EXPECT_FALSE(synthesize(query(4, 8, 2, Goal::Makespan), folder).fromCache);
  // A start that is off by one is noticed.
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    std::string text;
    std::getline(std::ifstream(entry.path()), text);
    size_t at = text.find("\"starts\":[0,1,");
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, 14, "\"starts\":[0,0,");
    std::ofstream(entry.path()) << text << "\n";
  }
  Synthesis mended = synthesize(asked, folder);
  EXPECT_FALSE(mended.fromCache);
  EXPECT_EQ(mended.value, 31);
  std::filesystem::remove_all(folder);
}

TEST(Synthesize, SmtLibReplays) {
  SynthesisQuery asked = query(3, 4, 2, Goal::Span);
  Synthesis made = synthesize(asked);
  ASSERT_TRUE(made.optimal());
  std::string yes = replay(synthesisSmtLib(asked, made.value));
  if (yes.empty())
    GTEST_SKIP() << "no z3 program";
  EXPECT_EQ(yes, "sat\n");
  EXPECT_EQ(replay(synthesisSmtLib(asked, made.value - 1)), "unsat\n");
}

} // namespace
