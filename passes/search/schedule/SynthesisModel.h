//===- SynthesisModel.h - the synthesis question as clauses ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESISMODEL_H
#define RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESISMODEL_H

#include "passes/search/schedule/StartTimes.h"
#include "passes/search/schedule/Synthesize.h"

#include <optional>

namespace reckon::search {

/// "Is there a schedule whose goal is at most `value`?" Every pass of a rank
/// runs its micro-batches in order, which loses nothing, since they are alike.
class SynthesisModel {
public:
  /// `repeat`: the schedule must have this block (its guard is filled in).
  SynthesisModel(const UnitQuery &query, int64_t value,
                 std::optional<Repeat> repeat = std::nullopt);

  /// False when counting alone shows that there is none.
  bool possible() const { return possible_; }
  StartTimes &times() { return *times_; }
  /// After Yes.
  StartTable table() const;

private:
  int64_t index(int64_t rank, int64_t pass, int64_t i) const {
    return (rank * 3 + pass) * query_.m + i;
  }
  template <typename Body> void forDependencies(Body body) const;
  void earliest();
  void latest(int64_t value);
  void oneAtATime();
  void repeatBlock();

  const UnitQuery &query_;
  std::optional<Repeat> repeat_;
  bool possible_ = true;
  std::vector<int64_t> earliest_, latest_;
  std::unique_ptr<StartTimes> times_;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SCHEDULE_SYNTHESISMODEL_H
