//===- Master.h - layouts as ordered Booleans for Z3 ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_MASTER_H
#define RECKON_PASSES_SEARCH_ASSIGN_MASTER_H

#include "passes/search/assign/Frame.h"
#include "passes/search/schedule/StartTimes.h"

#include <map>

namespace reckon::search {

/// The layers before every virtual stage as integers in Z3's finite domains,
/// with the window as their distances.
class Master {
public:
  using Literal = StartTimes::Literal;

  explicit Master(const Frame &frame);

  /// False when no layout is within the window at all.
  bool possible() const { return possible_; }

  enum class Answer { Layout, None, Unknown };
  Answer propose();
  /// Layers before a stage in the last proposal.
  int64_t before(int64_t stage) const;
  int64_t count(int64_t stage) const {
    return before(stage + 1) - before(stage);
  }

  /// "Stage `stage` has at least `n` layers."
  Literal holds(int64_t stage, int64_t n);
  /// "At most `n` layers come before stage `stage`."
  Literal by(int64_t stage, int64_t n) const;
  /// The fewest and the most layers that can come before a stage.
  int64_t earliest(int64_t stage) const { return low_[index(stage)]; }

  /// At least one of them, in all further proposals.
  void cut(const std::vector<Literal> &literals);

private:
  static size_t index(int64_t stage) { return static_cast<size_t>(stage); }

  int64_t stages_, layers_;
  bool possible_ = true;
  std::vector<int64_t> low_, high_, least_, most_;
  std::vector<StartTimes::Action> boundary_;
  StartTimes times_{StartTimes::Style::Folded};
  std::map<std::pair<int64_t, int64_t>, Literal> known_;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_MASTER_H
