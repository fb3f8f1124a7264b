//===- StartTimes.cpp - start times as ordered Booleans for Z3 ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/schedule/StartTimes.h"

#include "runtime/base/Status.h"

#include <z3.h>

#include <algorithm>
#include <limits>

using namespace reckon;
using namespace reckon::search;

/// Z3's side: what has been handed over so far.
struct StartTimes::Solver {
  Z3_context context;
  Z3_solver solver;
  Z3_sort boolean;
  std::vector<Z3_ast> variables, negations;
  size_t clauses = 0;

  Solver() {
    Z3_config config = Z3_mk_config();
    context = Z3_mk_context(config); // keeps what it makes until the end
    Z3_del_config(config);
    Z3_set_error_handler(context, [](Z3_context c, Z3_error_code code) {
      checkFailed(__FILE__, __LINE__, Z3_get_error_msg(c, code));
    });
    solver =
        Z3_mk_solver_for_logic(context, Z3_mk_string_symbol(context, "QF_FD"));
    Z3_solver_inc_ref(context, solver);
    boolean = Z3_mk_bool_sort(context);
  }
  ~Solver() {
    Z3_solver_dec_ref(context, solver);
    Z3_del_context(context);
  }

  Z3_ast ast(Literal literal) const {
    if (literal < 0)
      return literal == kTrue ? Z3_mk_true(context) : Z3_mk_false(context);
    return (literal & 1 ? negations : variables)[literal >> 1];
  }

  void handOver(const StartTimes &problem) {
    while (variables.size() < problem.names_.size()) {
      int next = static_cast<int>(variables.size());
      variables.push_back(
          Z3_mk_const(context, Z3_mk_int_symbol(context, next), boolean));
      negations.push_back(Z3_mk_not(context, variables.back()));
    }
    std::vector<Z3_ast> parts;
    for (; clauses < problem.ends_.size(); ++clauses) {
      parts.clear();
      size_t begin = clauses ? problem.ends_[clauses - 1] : 0;
      for (size_t i = begin; i < problem.ends_[clauses]; ++i)
        parts.push_back(ast(problem.literals_[i]));
      Z3_solver_assert(context, solver,
                       parts.empty() ? Z3_mk_false(context)
                       : parts.size() == 1
                           ? parts[0]
                           : Z3_mk_or(context, parts.size(), parts.data()));
    }
  }

  /// What the solver has counted, 0 before its first check.
  uint64_t counted() const {
    Z3_stats stats = Z3_solver_get_statistics(context, solver);
    Z3_stats_inc_ref(context, stats);
    uint64_t steps = 0;
    for (unsigned i = 0; i < Z3_stats_size(context, stats); ++i)
      if (std::string_view(Z3_stats_get_key(context, stats, i)) ==
              "rlimit count" &&
          Z3_stats_is_uint(context, stats, i))
        steps = Z3_stats_get_uint_value(context, stats, i);
    Z3_stats_dec_ref(context, stats);
    return steps;
  }
};

StartTimes::StartTimes(Style style) : style_(style) {}
StartTimes::~StartTimes() = default;

StartTimes::Literal StartTimes::makeVariable(Action action, std::string name) {
  names_.push_back({action, 0, std::move(name)});
  return static_cast<Literal>(2 * (names_.size() - 1));
}

StartTimes::Literal StartTimes::variable(const std::string &name) {
  return makeVariable(-1, name);
}

StartTimes::Action StartTimes::add(const std::string &name,
                                   std::vector<int64_t> candidates) {
  RECKON_CHECK(!candidates.empty() &&
               std::is_sorted(candidates.begin(), candidates.end()));
  auto action = static_cast<Action>(candidates_.size());
  // That it has started by its last candidate goes without saying; in complete
  // style it is said all the same.
  size_t count = candidates.size() - (style_ == Style::Folded ? 1 : 0);
  firstVariable_.push_back(static_cast<Literal>(2 * names_.size()));
  for (size_t i = 0; i < count; ++i) {
    makeVariable(action, "");
    names_.back().time = candidates[i];
  }
  actionNames_.push_back(name);
  candidates_.push_back(std::move(candidates));
  Literal first = firstVariable_.back();
  for (size_t i = 1; i < count; ++i) {
    auto at = first + static_cast<Literal>(2 * i);
    clause({negation(at - 2), at});
  }
  if (style_ == Style::Complete)
    clause({first + static_cast<Literal>(2 * (count - 1))});
  return action;
}

StartTimes::Action StartTimes::add(const std::string &name, int64_t first,
                                   int64_t last) {
  std::vector<int64_t> candidates;
  for (int64_t t = first; t <= last; ++t)
    candidates.push_back(t);
  return add(name, std::move(candidates));
}

StartTimes::Literal StartTimes::by(Action action, int64_t t) const {
  const std::vector<int64_t> &times = candidates_[action];
  auto past = std::upper_bound(times.begin(), times.end(), t) - times.begin();
  if (past == 0)
    return kFalse;
  if (style_ == Style::Folded && past == std::ssize(times))
    return kTrue;
  return firstVariable_[action] + static_cast<Literal>(2 * (past - 1));
}

void StartTimes::clause(const std::vector<Literal> &literals) {
  size_t begin = literals_.size();
  for (Literal literal : literals) {
    if (literal == kTrue) {
      literals_.resize(begin);
      return;
    }
    if (literal != kFalse)
      literals_.push_back(literal);
  }
  ends_.push_back(literals_.size());
}

void StartTimes::after(Action later, Action earlier, int64_t delay,
                       Literal guard) {
  // If the later one has started by t, the earlier one has by t - delay. Of
  // several t that say so of the same time, the last says all.
  const std::vector<int64_t> &times = candidates_[later];
  for (size_t i = 0; i < times.size(); ++i) {
    Literal then = by(earlier, times[i] - delay);
    if (i + 1 < times.size() && by(earlier, times[i + 1] - delay) == then)
      continue;
    clause({negation(guard), negation(by(later, times[i])), then});
  }
}

void StartTimes::shifted(Action later, Action earlier, int64_t delay) {
  after(later, earlier, delay);
  after(earlier, later, -delay);
}

StartTimes::Answer StartTimes::check(const std::vector<Literal> &assumptions) {
  if (!solver_)
    solver_ = std::make_unique<Solver>();
  Z3_context context = solver_->context;
  solver_->handOver(*this);
  Z3_params params = Z3_mk_params(context);
  Z3_params_inc_ref(context, params);
  // Z3 keeps the limit in 32 bits; 0 is none.
  Z3_params_set_uint(context, params, Z3_mk_string_symbol(context, "rlimit"),
                     static_cast<unsigned>(std::min<uint64_t>(
                         budget_, std::numeric_limits<unsigned>::max())));
  Z3_solver_set_params(context, solver_->solver, params);
  Z3_params_dec_ref(context, params);
  std::vector<Z3_ast> asts;
  for (Literal literal : assumptions)
    asts.push_back(solver_->ast(literal));
  Z3_lbool answer = Z3_solver_check_assumptions(context, solver_->solver,
                                                asts.size(), asts.data());
  steps_ = solver_->counted();
  if (answer != Z3_L_TRUE)
    return answer == Z3_L_FALSE ? Answer::No : Answer::Unknown;

  Z3_model model = Z3_solver_get_model(context, solver_->solver);
  Z3_model_inc_ref(context, model);
  starts_.assign(candidates_.size(), 0);
  for (size_t action = 0; action < candidates_.size(); ++action) {
    const std::vector<int64_t> &times = candidates_[action];
    size_t at = 0;
    auto started = [&](size_t candidate) {
      Literal literal = by(static_cast<Action>(action), times[candidate]);
      if (literal < 0)
        return literal == kTrue;
      Z3_ast value = nullptr;
      return Z3_model_eval(context, model, solver_->ast(literal), true,
                           &value) &&
             Z3_get_bool_value(context, value) == Z3_L_TRUE;
    };
    // The first that is true; the clauses order them.
    size_t end = times.size();
    while (at + 1 < end) {
      size_t middle = (at + end - 1) / 2;
      if (started(middle))
        end = middle + 1;
      else
        at = middle + 1;
    }
    starts_[action] = times[at];
  }
  Z3_model_dec_ref(context, model);
  return Answer::Yes;
}

std::string StartTimes::nameOf(Literal literal) const {
  if (literal < 0)
    return literal == kTrue ? "true" : "false";
  const Name &name = names_[literal >> 1];
  std::string text = literal & 1 ? "(not |" : "|";
  if (name.action < 0) {
    text += name.text;
  } else {
    text += actionNames_[name.action];
    text += '@';
    text += std::to_string(name.time);
  }
  text += literal & 1 ? "|)" : "|";
  return text;
}

std::string StartTimes::smtLib(const std::vector<Literal> &assumptions,
                               const std::string &comment) const {
  std::string text;
  for (size_t begin = 0; begin < comment.size();) {
    size_t end = std::min(comment.find('\n', begin), comment.size());
    text += "; " + comment.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  text += "(set-logic QF_FD)\n";
  for (size_t i = 0; i < names_.size(); ++i)
    text +=
        "(declare-fun " + nameOf(static_cast<Literal>(2 * i)) + " () Bool)\n";
  size_t begin = 0;
  for (size_t end : ends_) {
    std::string line;
    for (size_t i = begin; i < end; ++i)
      line += " " + nameOf(literals_[i]);
    text += end == begin       ? "(assert false)\n"
            : end == begin + 1 ? "(assert" + line + ")\n"
                               : "(assert (or" + line + "))\n";
    begin = end;
  }
  for (Literal literal : assumptions)
    text += "(assert " + nameOf(literal) + ")\n";
  return text + "(check-sat)\n";
}
