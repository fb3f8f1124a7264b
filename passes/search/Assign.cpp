//===- Assign.cpp - layers and recomputation of each stage ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Assign.h"

#include "passes/search/Space.h"

#include <algorithm>
#include <limits>

using namespace reckon;
using namespace reckon::search;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Candidates that are refined.
constexpr int64_t kRefined = 16;

double stageSeconds(const model::TimeModel &time, const model::Choice &choice,
                    int64_t stage) {
  model::StageTime parts = time.stage(choice, stage);
  return parts.forward + parts.backward();
}

/// The best that one stage can do with given layers.
struct StageBest {
  double seconds = kNever; ///< kNever: does not fit
  int64_t full = 0;        ///< layers recomputed
};

class Program {
public:
  Program(const model::Choice &base, Evaluator &evaluator, uint64_t limit,
          const AssignFreedom &freedom)
      : base_(base), trial_(base), evaluator_(evaluator), limit_(limit),
        layers_(base.layers()), freeLayout_(freedom.layout),
        perLayer_(freedom.recompute && base.recompute != Recompute::Selective &&
                  base.recomputeLayers.empty()) {
    if (perLayer_) {
      trial_.recompute = Recompute::Full;
      trial_.recomputeLayers.assign(static_cast<size_t>(base.pp), 0);
    }
    // A choice that fits already is not to become slower.
    if (evaluator.peak(base).bytes <= limit)
      cap_ = slowestStage(base, evaluator);
  }

  std::optional<Assignment> run() {
    auto most = [](double before, double stage) {
      return std::max(before, stage);
    };
    auto sum = [](double before, double stage) { return before + stage; };
    double slowest = solve(most, cap_);
    if (slowest == kNever)
      return std::nullopt;
    solve(sum, slowest);
    Assignment found{.choice = trial_, .slowest = slowest};
    int64_t end = layers_;
    for (int64_t k = base_.pp - 1; k >= 0; --k) {
      int64_t first = at(k + 1, end).first;
      auto stage = static_cast<size_t>(k);
      found.choice.layout[stage] = end - first;
      if (perLayer_)
        found.choice.recomputeLayers[stage] = best(k, first, end - first).full;
      end = first;
    }
    simplify(found.choice);
    return found;
  }

private:
  struct Cell {
    double value = kNever;
    int64_t first = 0; ///< layers before the last of these stages
  };

  Cell &at(int64_t stages, int64_t layers) {
    return cells_[static_cast<size_t>(stages * (layers_ + 1) + layers)];
  }

  /// Least value over the assignments of all layers whose stages are within
  /// `cap` seconds each.
  template <typename Join> double solve(Join join, double cap) {
    int64_t p = base_.pp;
    cells_.assign(static_cast<size_t>((p + 1) * (layers_ + 1)), {});
    at(0, 0).value = 0;
    for (int64_t k = 0; k < p; ++k)
      for (int64_t first = 0; first <= layers_ - (p - k); ++first) {
        double before = at(k, first).value;
        if (before == kNever)
          continue;
        int64_t largest = layers_ - first - (p - k - 1);
        int64_t from = k == p - 1 ? largest : 1;
        if (!freeLayout_)
          from = largest = base_.layout[static_cast<size_t>(k)];
        for (int64_t count = from; count <= largest; ++count) {
          StageBest stage = best(k, first, count);
          if (stage.seconds > cap)
            continue;
          double value = join(before, stage.seconds);
          Cell &cell = at(k + 1, first + count);
          if (value < cell.value)
            cell = {value, first};
        }
      }
    return at(p, layers_).value;
  }

  StageBest best(int64_t k, int64_t first, int64_t count) {
    const model::ModelShape &m = evaluator_.job().model;
    int64_t dense =
        m.isMoe() ? std::clamp<int64_t>(m.firstDense - first, 0, count) : count;
    auto [entry, added] = known_.try_emplace({k, count, dense});
    if (!added)
      return entry->second;
    place(k, first, count);
    int64_t most = perLayer_ ? count : 0;
    for (int64_t full = 0; full <= most; ++full) {
      if (perLayer_)
        trial_.recomputeLayers[static_cast<size_t>(k)] = full;
      double seconds = stageSeconds(evaluator_.timeModel(), trial_, k);
      if (seconds > cap_)
        break; // Recomputing more is slower still.
      if (evaluator_.memory(trial_, k) <= limit_) {
        entry->second = {seconds, full};
        break;
      }
    }
    if (perLayer_)
      trial_.recomputeLayers[static_cast<size_t>(k)] = 0;
    return entry->second;
  }

  /// Lays the trial out so that stage `k` has the given layers; how the others
  /// share the rest does not matter to it.
  void place(int64_t k, int64_t first, int64_t count) {
    auto spread = [&](int64_t from, int64_t stages, int64_t layers) {
      for (int64_t i = 0; i < stages; ++i)
        trial_.layout[static_cast<size_t>(from + i)] =
            layers / stages + (i < layers % stages ? 1 : 0);
    };
    spread(0, k, first);
    trial_.layout[static_cast<size_t>(k)] = count;
    spread(k + 1, base_.pp - k - 1, layers_ - first - count);
  }

  /// Lists that say what a mode says are written as the mode.
  static void simplify(model::Choice &choice) {
    const std::vector<int64_t> &full = choice.recomputeLayers;
    if (full.empty())
      return;
    if (full == choice.layout) {
      choice.recomputeLayers.clear();
    } else if (std::all_of(full.begin(), full.end(),
                           [](int64_t n) { return n == 0; })) {
      choice.recompute = Recompute::None;
      choice.recomputeLayers.clear();
    }
  }

  const model::Choice &base_;
  model::Choice trial_;
  Evaluator &evaluator_;
  uint64_t limit_;
  int64_t layers_;
  bool freeLayout_, perLayer_;
  double cap_ = std::numeric_limits<double>::max();
  std::vector<Cell> cells_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, StageBest> known_;
};

} // namespace

AssignFreedom search::assignFreedom(const Spec &spec) {
  const auto &p = spec.parallelism;
  return {.layout = p.pipelineLayout->empty(),
          .recompute = p.recompute.isAuto && !p.recomputeLayers &&
                       *spec.search.space != SearchSpace::Compilable};
}

double search::slowestStage(const model::Choice &choice,
                            const Evaluator &evaluator) {
  double slowest = 0;
  for (int64_t k = 0; k < choice.pp; ++k)
    slowest = std::max(slowest, stageSeconds(evaluator.timeModel(), choice, k));
  return slowest;
}

std::optional<Assignment> search::assignLayers(const model::Choice &choice,
                                               Evaluator &evaluator,
                                               uint64_t limitBytes,
                                               const AssignFreedom &freedom) {
  if (choice.v != 1 || choice.layers() < choice.pp)
    return std::nullopt;
  return Program(choice, evaluator, limitBytes, freedom).run();
}

void search::refine(const Spec &spec, SearchResult &result) {
  AssignFreedom freedom = assignFreedom(spec);
  // {layers: n} binds every stage to n; uneven stages would loosen it.
  if (result.candidates.empty() || spec.parallelism.recomputeLayers ||
      (!freedom.layout && !freedom.recompute) ||
      *spec.search.objective == Objective::Memory)
    return;
  Evaluator evaluator(spec);
  Space space(spec);
  double fastest = result.candidates.front().time.step;
  std::optional<Assignment> best;
  int64_t tried = 0, solved = 0;
  for (const Candidate &candidate : result.candidates) {
    if (tried++ == kRefined)
      break;
    std::optional<Assignment> found = assignLayers(
        candidate.choice, evaluator, evaluator.limitBytes(), freedom);
    if (!found)
      continue;
    ++solved;
    const model::Choice &choice = found->choice;
    double seconds = evaluator.step(choice);
    if (seconds < fastest && space.refuses(choice).empty() &&
        evaluator.forbids(choice).empty() && evaluator.judge(choice).fits()) {
      fastest = seconds;
      best = found;
    }
  }
  result.assignments += solved;
  if (!best)
    return;
  result.refined = Refined{evaluator.candidate(best->choice),
                           "optimal assignment (dynamic program)"};
  result.proof.parts.push_back(
      {.what = "assignment",
       .method = "dynamic_program",
       .optimal = true,
       .bound = best->slowest,
       .unit = "s",
       .text = "no other layers and recomputation of these stages have a "
               "faster slowest stage within memory"});
}
