//===- StartTimes.h - start times as ordered Booleans for Z3 --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_STARTTIMES_H
#define RECKON_PASSES_SEARCH_SCHEDULE_STARTTIMES_H

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reckon::search {

/// Integer start times of actions in Z3's finite-domain logic (QF_FD). An
/// action has a Boolean "has started by t" for each time t at which it may
/// start, so that orders and delays are clauses of two literals.
///
/// One thread, no randomness: the same calls give the same answer and the same
/// count of solver steps.
class StartTimes {
public:
  enum class Answer { Yes, No, Unknown };
  enum class Style {
    Folded,   ///< what follows from the candidates alone is left out
    Complete, ///< every clause reaches the solver
  };
  using Action = int64_t;
  /// 2 variable for the variable, 2 variable + 1 for its negation.
  using Literal = int32_t;
  static constexpr Literal kTrue = -1, kFalse = -2;

  explicit StartTimes(Style style);
  ~StartTimes();
  StartTimes(const StartTimes &) = delete;
  StartTimes &operator=(const StartTimes &) = delete;

  /// An action that starts at one of `candidates`, ascending and not empty.
  Action add(const std::string &name, std::vector<int64_t> candidates);
  /// The same for all times from `first` to `last`.
  Action add(const std::string &name, int64_t first, int64_t last);
  Literal variable(const std::string &name);

  int64_t first(Action action) const { return candidates_[action].front(); }
  int64_t last(Action action) const { return candidates_[action].back(); }
  const std::vector<int64_t> &candidates(Action action) const {
    return candidates_[action];
  }

  /// "has started by t".
  Literal by(Action action, int64_t t) const;
  static Literal negation(Literal literal) {
    return literal < 0 ? kTrue + kFalse - literal : literal ^ 1;
  }

  /// At least one of them.
  void clause(std::initializer_list<Literal> literals) {
    clause(std::vector<Literal>(literals));
  }
  void clause(const std::vector<Literal> &literals);
  /// start(later) >= start(earlier) + delay; only where `guard` holds.
  void after(Action later, Action earlier, int64_t delay,
             Literal guard = kTrue);
  /// start(later) = start(earlier) + delay.
  void shifted(Action later, Action earlier, int64_t delay);

  /// Steps that the solver may take in one check; unlimited by default.
  void setBudget(uint64_t steps) { budget_ = steps; }
  Answer check(const std::vector<Literal> &assumptions = {});
  /// The start in the schedule that the last Yes found.
  int64_t start(Action action) const { return starts_[action]; }

  uint64_t variables() const { return names_.size(); }
  uint64_t clauses() const { return ends_.size(); }
  uint64_t steps() const { return steps_; } ///< of all checks together

  /// The problem with `assumptions` asserted, for the `z3` program, which
  /// answers `sat` or `unsat`. `comment` may have several lines.
  std::string smtLib(const std::vector<Literal> &assumptions,
                     const std::string &comment) const;

private:
  struct Solver;

  Literal makeVariable(Action action, std::string name);
  std::string nameOf(Literal literal) const;

  Style style_;
  uint64_t budget_ = 0, steps_ = 0;
  std::vector<std::vector<int64_t>> candidates_;
  std::vector<Literal> firstVariable_; ///< of each action's candidates
  std::vector<std::string> actionNames_;
  /// The action and candidate of a variable, or -1 and a name.
  struct Name {
    Action action;
    int64_t time;
    std::string text;
  };
  std::vector<Name> names_;
  std::vector<Literal> literals_; ///< of all clauses, one after the other
  std::vector<size_t> ends_;      ///< of each clause in literals_
  std::vector<int64_t> starts_;
  std::unique_ptr<Solver> solver_;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_STARTTIMES_H
