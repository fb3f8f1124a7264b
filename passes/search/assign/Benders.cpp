//===- Benders.cpp - assignment by Z3 with cuts from the cost model -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/assign/Benders.h"

#include "passes/search/assign/Master.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::search;

bool search::hasCuts(const model::Choice &choice) {
  switch (choice.schedule) {
  case PipelineSchedule::OneFOneB:
  case PipelineSchedule::GPipe:
  case PipelineSchedule::Csv:
  case PipelineSchedule::Synthesized:
    return false;
  default:
    return choice.pp > 1;
  }
}

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Benders {
public:
  explicit Benders(Frame &frame)
      : frame_(frame), master_(frame), cap_(frame.pipelineCap()) {}

  Assigned run() {
    Assigned result{.bound = frame_.beat(), .method = "z3"};
    if (!master_.possible())
      return result;
    double best = frame_.beat(), open = kNever;
    for (int64_t cuts = 0;;) {
      Master::Answer answer = master_.propose();
      if (answer == Master::Answer::None)
        break;
      if (answer == Master::Answer::Unknown || cuts >= frame_.options().cuts) {
        open =
            std::min(open, frame_.evaluator().assignmentBound(frame_.base()));
        break;
      }
      if (int64_t made = cutRanks()) {
        cuts += made;
        continue;
      }
      // No rank stands alone against it.
      model::Choice choice = proposal();
      double step = frame_.step(choice);
      if (step < best) {
        best = result.step = step;
        result.choice = std::move(choice);
        cap_ = std::min(cap_, frame_.pipelineOf(step));
        if (cutRanks() > 0)
          continue;
      }
      cuts += 1;
      // Its time is in something that cuts do not see: leave it out alone.
      open = std::min(open, leastStep());
      exclude();
    }
    result.bound = std::min({frame_.beat(), best, open});
    return result;
  }

private:
  /// One rank of the last proposal.
  const RankOption &option(int64_t rank) {
    std::vector<int64_t> counts, before;
    for (int64_t stage : frame_.stagesOf(rank)) {
      counts.push_back(master_.count(stage));
      before.push_back(master_.before(stage));
    }
    return option(rank, counts, before);
  }
  const RankOption &option(int64_t rank, const std::vector<int64_t> &counts,
                           const std::vector<int64_t> &before) {
    std::vector<int64_t> key{rank};
    for (size_t i = 0; i < counts.size(); ++i) {
      key.push_back(counts[i]);
      key.push_back(frame_.alike() ? 0
                                   : std::min(before[i], frame_.denseLayers()));
    }
    auto [entry, added] = known_.try_emplace(key);
    if (added)
      entry->second = frame_.option(rank, counts, before);
    return entry->second;
  }

  bool bad(int64_t rank, const RankOption &o) const {
    return !o.fits || frame_.path(rank, o) >= cap_;
  }

  /// Whether what a stage holds may hang on what is before it.
  bool mixed(int64_t stage) const {
    return !frame_.alike() && master_.earliest(stage) < frame_.denseLayers();
  }

  /// "The stage does not have these layers or more."
  void refuse(int64_t stage, int64_t count, int64_t before,
              std::vector<Master::Literal> &clause) {
    clause.push_back(StartTimes::negation(master_.holds(stage, count)));
    if (!mixed(stage))
      return;
    // Of the same kinds only with as many before it.
    clause.push_back(StartTimes::negation(master_.by(stage, before)));
    clause.push_back(master_.by(stage, before - 1));
  }

  /// Cuts for all ranks of the proposal that cannot be as they are; how many.
  int64_t cutRanks() {
    int64_t made = 0;
    std::vector<std::vector<int64_t>> refused;
    for (int64_t rank = 0; rank < frame_.ranks(); ++rank) {
      if (!bad(rank, option(rank)))
        continue;
      const std::vector<int64_t> &own = frame_.stagesOf(rank);
      std::vector<int64_t> counts, before;
      bool anywhere = true;
      for (int64_t stage : own) {
        counts.push_back(master_.count(stage));
        before.push_back(master_.before(stage));
        anywhere = anywhere && !mixed(stage);
      }
      // As few layers as are still too many.
      for (size_t i = own.size(); i-- > 0;) {
        int64_t was = counts[i];
        counts[i] = frame_.least(own[i]);
        if (was != counts[i] && !bad(rank, option(rank, counts, before)))
          counts[i] = was;
      }
      made += add(rank, counts, before);
      if (anywhere &&
          std::find(refused.begin(), refused.end(), counts) == refused.end())
        refused.push_back(counts);
    }
    // The same layers may be too many for other ranks.
    for (const std::vector<int64_t> &counts : refused)
      for (int64_t rank = 0; rank < frame_.ranks(); ++rank)
        made += copy(rank, counts);
    return made;
  }

  int64_t copy(int64_t rank, const std::vector<int64_t> &counts) {
    const std::vector<int64_t> &own = frame_.stagesOf(rank);
    std::vector<int64_t> before;
    for (size_t i = 0; i < own.size(); ++i) {
      if (mixed(own[i]) || counts[i] < frame_.least(own[i]) ||
          counts[i] > frame_.most(own[i]))
        return 0;
      before.push_back(master_.before(own[i]));
    }
    if (!bad(rank, option(rank, counts, before)))
      return 0;
    return add(rank, counts, before);
  }

  int64_t add(int64_t rank, const std::vector<int64_t> &counts,
              const std::vector<int64_t> &before) {
    std::vector<Master::Literal> clause;
    const std::vector<int64_t> &own = frame_.stagesOf(rank);
    for (size_t i = 0; i < own.size(); ++i)
      refuse(own[i], counts[i], before[i], clause);
    std::vector<Master::Literal> key = clause;
    std::sort(key.begin(), key.end());
    if (!cuts_.insert({std::move(key), true}).second)
      return 0;
    master_.cut(clause);
    return 1;
  }

  void exclude() {
    std::vector<Master::Literal> clause;
    for (int64_t stage = 1; stage < frame_.stages(); ++stage) {
      int64_t n = master_.before(stage);
      clause.push_back(StartTimes::negation(master_.by(stage, n)));
      clause.push_back(master_.by(stage, n - 1));
    }
    master_.cut(clause);
  }

  /// Of the proposal, by what the bounds see of it.
  double leastStep() {
    double longest = 0, least = kNever;
    int64_t heavy = 0;
    for (int64_t rank = 0; rank < frame_.ranks(); ++rank) {
      longest = std::max(longest, frame_.path(rank, option(rank)));
      heavy = std::max(heavy, option(rank).heavy);
    }
    for (int64_t rank = 0; rank < frame_.ranks(); ++rank) {
      const RankOption &o = option(rank);
      least =
          std::min(least, frame_.bound(longest, o.forward, o.backward, heavy));
    }
    return least;
  }

  model::Choice proposal() {
    auto stages = static_cast<size_t>(frame_.stages());
    std::vector<int64_t> layout(stages), full(stages);
    for (int64_t rank = 0; rank < frame_.ranks(); ++rank) {
      const RankOption &o = option(rank);
      for (size_t i = 0; i < o.layers.size(); ++i) {
        auto stage = static_cast<size_t>(frame_.stagesOf(rank)[i]);
        layout[stage] = o.layers[i];
        full[stage] = o.full[i];
      }
    }
    return frame_.choice(layout, full);
  }

  Frame &frame_;
  Master master_;
  double cap_; ///< seconds of the pipeline
  std::map<std::vector<int64_t>, RankOption> known_;
  std::map<std::vector<Master::Literal>, bool> cuts_;
};

} // namespace

Assigned search::solveBenders(Frame &frame) { return Benders(frame).run(); }
