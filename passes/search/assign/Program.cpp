//===- Program.cpp - assignment as a dynamic program ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/assign/Program.h"

#include "passes/model/Schedule.h"

#include <algorithm>
#include <tuple>

using namespace reckon;
using namespace reckon::search;

std::vector<int64_t> search::spreadOver(const Frame &frame, int64_t rank,
                                        int64_t count) {
  const std::vector<int64_t> &own = frame.stagesOf(rank);
  std::vector<int64_t> counts;
  int64_t inner = frame.most(own.front());
  for (int64_t stage : own) {
    counts.push_back(frame.least(stage));
    count -= counts.back();
    if (stage != 0 && stage != frame.stages() - 1)
      inner = counts.back();
  }
  auto raise = [&](size_t i, int64_t to) {
    int64_t more = std::clamp<int64_t>(to - counts[i], 0, count);
    counts[i] += more;
    count -= more;
  };
  for (size_t i = 0; i < own.size(); ++i)
    raise(i, std::min(inner, frame.most(own[i])));
  bool head = own.back() == frame.stages() - 1;
  for (size_t i = own.size() - (head ? 1 : 0); i-- > 0;)
    raise(i, frame.most(own[i]));
  raise(own.size() - 1, frame.most(own.back()));
  return counts;
}

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// What is behind a position: the layers of all ranks before it and, of several
/// chunks, the dense ones among those of their first chunks.
struct Behind {
  int64_t layers = 0;
  int64_t dense = 0;
};

/// One value for each position and what may be behind it.
template <typename T> class Table {
public:
  Table(int64_t positions, int64_t layers, int64_t dense, T none)
      : layers_(layers + 1), dense_(dense + 1),
        values_(static_cast<size_t>((positions + 1) * layers_ * dense_), none) {
  }
  T &at(int64_t k, Behind b) {
    return values_[static_cast<size_t>((k * layers_ + b.layers) * dense_ +
                                       b.dense)];
  }

private:
  int64_t layers_, dense_;
  std::vector<T> values_;
};

class Program {
public:
  explicit Program(Frame &frame)
      : frame_(frame), size_(frame.ranks()), layers_(frame.layers()),
        dense_(frame.chunks() > 1 && frame.layoutOpen() && !frame.alike()
                   ? frame.denseLayers()
                   : 0),
        before_(table()), after_(table()) {}

  Assigned run() {
    Assigned result{.bound = frame_.beat()};
    if (!limitCounts())
      return result;
    Behind all{layers_, dense_};
    before_.at(0, {}) = 0;
    forEach([&](int64_t k, Behind b, Behind next, const RankOption &o) {
      lower(before_.at(k + 1, next), before_.at(k, b) + o.work());
    });
    if (before_.at(size_, all) == kNever)
      return result;
    after_.at(size_, all) = 0;
    for (int64_t k = size_ - 1; k >= 0; --k)
      forEachAt(k, [&](int64_t, Behind b, Behind next, const RankOption &o) {
        lower(after_.at(k, b), after_.at(k + 1, next) + o.work());
      });
    setRamps(all);
    if (low_ == high_)
      return onlyOne();

    // Fewer layers on the rank that holds most are cheaper to reduce; a longer
    // path may be worth it. The shortest of all paths ends the trade.
    double free = shortest(layers_, nullptr, strictOf_).pipeline;
    double best = frame_.beat();
    for (int64_t held = leastHeld();; ++held) {
      double proved = shortest(held, nullptr, strictOf_).pipeline;
      double least = std::max(proved + idle_, through_);
      if (least < kNever && least <= frame_.pipelineCap()) {
        // Whichever rank is the busiest, reductions hide behind its passes.
        for (const auto &[key, o] : known_)
          if (o.fits)
            result.bound = std::min(
                result.bound,
                frame_.bound(std::max(least, frame_.micro() * o.work()),
                             o.forward, o.backward, held));
        model::Choice choice = trace(shortest(held));
        double step = frame_.step(choice);
        if (step < best) {
          best = result.step = step;
          result.choice = std::move(choice);
        }
      }
      if (proved <= free)
        return result;
    }
  }

private:
  struct Longest {
    double pipeline = kNever; ///< seconds
    double path = 0;          ///< without Frame::ends()
    int64_t held = 0; ///< layers of the heavier kind on one rank, at most
    const RankOption *first = nullptr, *last = nullptr;
  };

  /// The counts leave nothing open.
  Assigned onlyOne() {
    double any = kNever;
    model::Choice choice =
        trace({.path = any, .held = layers_, .first = nullptr});
    double step = frame_.step(choice), seconds = frame_.seconds(choice);
    Assigned result{.bound = std::min(frame_.beat(), seconds)};
    if (step < kNever) {
      result.step = step;
      result.choice = std::move(choice);
    }
    return result;
  }

  /// Whether the chunks of the first and the last rank matter to each other.
  bool chained() const {
    return frame_.chunks() > 1 &&
           frame_.base().schedule == PipelineSchedule::Interleaved;
  }

  /// The assignment whose longest path is shortest, of those without a rank
  /// that has more than `held` layers of the heavier kind.
  Longest shortest(int64_t held) {
    if (!chained())
      return shortest(held, nullptr, rampsOf_);
    Longest found;
    std::vector<const RankOption *> firsts;
    forEachAt(0, [&](int64_t, Behind, Behind, const RankOption &o) {
      firsts.push_back(&o);
    });
    for (const RankOption *first : firsts)
      if (Longest one = shortest(held, first, rampsOf_);
          one.pipeline < found.pipeline)
        found = one;
    return found;
  }

  /// The same for one first rank, with these ramps.
  Longest shortest(int64_t held, const RankOption *first,
                   const std::vector<double> &ramps) {
    Longest found{.held = held, .first = first};
    auto paths = table();
    paths.at(0, {}) = 0;
    forEach([&](int64_t k, Behind b, Behind next, const RankOption &o) {
      if (o.heavy > held || (k == 0 && first && &o != first))
        return;
      double longest = std::max(paths.at(k, b), path(k, b, next, o, ramps));
      if (k < size_ - 1) {
        lower(paths.at(k + 1, next), longest);
        return;
      }
      double pipeline = longest + (first ? frame_.ends(*first, o) : 0);
      if (pipeline < found.pipeline)
        found = {pipeline, longest, held, first, &o};
    });
    return found;
  }

  /// Layers of the heavier kind on the rank that has most of them.
  int64_t leastHeld() const {
    int64_t heavy = layers_ - (frame_.alike() ? 0 : frame_.denseLayers());
    return (heavy + size_ - 1) / size_;
  }

  Table<double> table() const { return {size_, layers_, dense_, kNever}; }
  static bool lower(double &cell, double value) {
    if (value >= cell)
      return false;
    cell = value;
    return true;
  }

  /// How many layers each position may have at all: what fits the time that is
  /// to be beaten without recomputation, and what the others then leave.
  bool limitCounts() {
    std::vector<int64_t> low, high;
    int64_t lows = 0, highs = 0;
    for (int64_t k = 0; k < size_; ++k) {
      int64_t least = 0, most = 0;
      for (int64_t stage : frame_.stagesOf(k)) {
        least += frame_.least(stage);
        most += frame_.most(stage);
      }
      most = std::min(most, layers_);
      auto quick = [&](int64_t count) {
        return frame_.quickest(k, spreadOver(frame_, k, count)) <=
               frame_.rankCap();
      };
      if (!quick(least))
        return false;
      int64_t good = least, bad = most + 1;
      while (bad - good > 1) {
        int64_t middle = (good + bad) / 2;
        (quick(middle) ? good : bad) = middle;
      }
      low.push_back(least), high.push_back(good);
      lows += least, highs += good;
    }
    if (highs < layers_ || lows > layers_)
      return false;
    earliest_.assign(1, 0), latest_.assign(1, 0);
    for (size_t k = 0; k < low.size(); ++k) {
      low_.push_back(std::max(low[k], layers_ - (highs - high[k])));
      high_.push_back(std::min(high[k], layers_ - (lows - low[k])));
      earliest_.push_back(earliest_.back() + low_[k]);
      latest_.push_back(latest_.back() + high_[k]);
    }
    return true;
  }

  /// Calls body(k, behind, behind the next, option) for all that fits and can
  /// be reached, by rising k.
  template <typename Body> void forEach(Body body) {
    for (int64_t k = 0; k < size_; ++k)
      forEachAt(k, body);
  }
  template <typename Body> void forEachAt(int64_t k, Body body) {
    auto at = static_cast<size_t>(k);
    int64_t restLow = earliest_.back() - earliest_[at + 1];
    int64_t restHigh = latest_.back() - latest_[at + 1];
    int64_t last = std::min(latest_[at], layers_);
    for (int64_t layers = earliest_[at]; layers <= last; ++layers)
      for (int64_t dense = 0; dense <= dense_; ++dense) {
        Behind b{layers, dense};
        if (before_.at(k, b) == kNever)
          continue;
        int64_t from = std::max(low_[at], layers_ - layers - restHigh);
        int64_t to = std::min(high_[at], layers_ - layers - restLow);
        for (int64_t count = from; count <= to; ++count) {
          const RankOption &o = option(k, b, count);
          if (!o.fits)
            break; // more layers fit even less
          Behind next{layers + count,
                      std::min(dense_, dense + o.layers.front())};
          body(k, b, next, o);
        }
      }
  }

  const RankOption &option(int64_t k, Behind b, int64_t count) {
    // Of one chunk the place says which layers these are.
    int64_t behind = frame_.chunks() > 1 ? b.dense : b.layers;
    int64_t dense =
        frame_.alike()
            ? 0
            : std::clamp<int64_t>(frame_.denseLayers() - behind, 0, count);
    auto [entry, added] = known_.try_emplace({k, count, dense});
    RankOption &o = entry->second;
    if (!added)
      return o;
    o = frame_.option(k, spreadOver(frame_, k, count), behind);
    if (o.fits)
      mostPiece_ = std::max(mostPiece_, o.piece);
    return o;
  }

  /// What does not hang on the path.
  void setRamps(Behind all) {
    PipelineSchedule schedule = frame_.base().schedule;
    auto size = static_cast<size_t>(size_);
    rampsOf_.assign(size, 0);
    strictOf_.assign(size, 0);
    if (frame_.chunks() > 1 && (schedule == PipelineSchedule::Interleaved ||
                                schedule == PipelineSchedule::Bfs)) {
      std::vector<double> firsts(size, kNever), lasts(size, kNever);
      double chunk = 0; // some chunk is so long
      forEach([&](int64_t k, Behind, Behind, const RankOption &o) {
        auto at = static_cast<size_t>(k);
        lower(firsts[at], workOf(o.passes.front()));
        lower(lasts[at], workOf(o.passes.back()));
      });
      chunk = std::max(lasts.back(), firsts.front());
      double before = 0, after = 0;
      for (size_t k = 0; k < size; ++k) {
        rampsOf_[k] = before;
        before += firsts[k];
      }
      // Of an interleaved order what is after a rank it may use, as long as
      // chunks are not alike.
      if (schedule == PipelineSchedule::Interleaved)
        strictOf_ = rampsOf_;
      for (size_t k = size; k-- > 0;) {
        rampsOf_[k] += after;
        after += lasts[k];
      }
      if (schedule == PipelineSchedule::Bfs)
        strictOf_ = rampsOf_;
      // One micro-batch goes through everything, the others through one chunk.
      if (schedule == PipelineSchedule::Bfs ||
          frame_.base().numMicroBatches <= size_)
        through_ = before_.at(size_, all) + (frame_.micro() - 1) * chunk;
    }
    if (mostPiece_ == 0)
      return;
    auto pieces = table();
    pieces.at(0, {}) = 0;
    forEach([&](int64_t k, Behind b, Behind next, const RankOption &o) {
      lower(pieces.at(k + 1, next), pieces.at(k, b) + o.piece);
    });
    // The largest piece does not count.
    idle_ = std::max(0.0, pieces.at(size_, all) - mostPiece_);
  }

  static double workOf(const model::StageDurations &stage) {
    return stage.forward + stage.backward;
  }

  /// Seconds of the longest path through a position, at least.
  double path(int64_t k, Behind b, Behind next, const RankOption &o,
              const std::vector<double> &ramps) {
    double own = frame_.micro() * o.work();
    if (frame_.chunks() > 1 || size_ == 1)
      return own + ramps[static_cast<size_t>(k)];
    double before = before_.at(k, b), after = after_.at(k + 1, next);
    switch (frame_.base().schedule) {
    case PipelineSchedule::GPipe:
    case PipelineSchedule::Bfs:
      return own + before + after;
    case PipelineSchedule::OneFOneB:
    case PipelineSchedule::Interleaved:
      return model::pathOf1F1B({.forward = o.forward, .backward = o.backward},
                               before, after, size_ - 1 - k,
                               frame_.base().numMicroBatches);
    default:
      return own;
    }
  }

  /// Of the assignments whose paths are as short, the one that recomputes
  /// least, or that idles least where a schedule idles beside the path.
  model::Choice trace(const Longest &found) {
    bool idles = mostPiece_ > 0;
    double cap = found.path * (1 + 1e-12);
    auto works = table();
    Table<Behind> from(size_, layers_, dense_, {});
    works.at(0, {}) = 0;
    forEach([&](int64_t k, Behind b, Behind next, const RankOption &o) {
      if (o.heavy > found.held ||
          (found.first && ((k == 0 && &o != found.first) ||
                           (k == size_ - 1 && &o != found.last))))
        return;
      if (path(k, b, next, o, rampsOf_) <= cap &&
          lower(works.at(k + 1, next),
                works.at(k, b) + (idles ? o.piece : o.work())))
        from.at(k + 1, next) = b;
    });
    auto stages = static_cast<size_t>(frame_.stages());
    std::vector<int64_t> layout(stages), full(stages);
    Behind end{layers_, dense_};
    for (int64_t k = size_ - 1; k >= 0; --k) {
      Behind b = from.at(k + 1, end);
      const RankOption &o = option(k, b, end.layers - b.layers);
      for (size_t i = 0; i < o.layers.size(); ++i) {
        auto stage = static_cast<size_t>(frame_.stagesOf(k)[i]);
        layout[stage] = o.layers[i];
        full[stage] = o.full[i];
      }
      end = b;
    }
    return frame_.choice(layout, full);
  }

  Frame &frame_;
  int64_t size_, layers_, dense_;
  /// Least work of the positions before, and from a position on.
  Table<double> before_, after_;
  std::vector<int64_t> low_, high_, earliest_, latest_;
  /// What a rank waits for at the ramps: by the formula, and at least.
  std::vector<double> rampsOf_, strictOf_;
  double mostPiece_ = 0, idle_ = 0, through_ = 0;
  std::map<std::tuple<int64_t, int64_t, int64_t>, RankOption> known_;
};

} // namespace

Assigned search::solveProgram(Frame &frame) { return Program(frame).run(); }
