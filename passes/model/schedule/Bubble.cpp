//===- Bubble.cpp - how long a step takes, by formula ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace reckon;
using namespace reckon::model;

namespace {

/// The longest path through a step of stages that differ. `time(c, r)` below
/// is a pass of chunk c of rank r, which is stage c p + r.
class Stages {
public:
  Stages(const ScheduleShape &shape, std::span<const StageDurations> stages)
      : p_(shape.p), v_(shape.v), m_(static_cast<double>(shape.m)),
        stages_(stages) {}

  /// All forwards chunk by chunk, then all backwards: exact. A path goes up the
  /// ranks with one micro-batch, spends the other m - 1 on one stage, and goes
  /// on; it enters the next chunk on the rank that it has reached, after the
  /// last micro-batch, or on the first rank with the micro-batch that it has.
  double breadthFirst() const {
    std::vector<double> done(static_cast<size_t>(p_), kNone);
    done.front() = 0;
    double first = kNone, last = kNone;
    for (int64_t c = 0; c < v_; ++c)
      sweep(done, first, last, [&](int64_t i) { return at(c, i).forward; });
    std::reverse(done.begin(), done.end());
    first = last = kNone;
    for (int64_t c = v_ - 1; c >= 0; --c)
      sweep(done, first, last,
            [&](int64_t i) { return at(c, p_ - 1 - i).backward; });
    return last;
  }

  /// A rank works on all micro-batches. It starts after the first one has come
  /// to it and ends before the last one has gone on from it, and it waits for
  /// the first one to return from the ranks above, and for the last one.
  double oneForwardOneBackward() const {
    double longest = 0, before = 0, above = sumOver(0);
    for (int64_t r = 0; r < p_; ++r) {
      const StageDurations &own = at(0, r);
      above -= work(own);
      longest = std::max(longest, pathOf1F1B(own, before, above, p_ - 1 - r,
                                             static_cast<int64_t>(m_)));
      before += work(own);
    }
    return longest;
  }

  /// A rank works on all chunks of all micro-batches, and waits as often as
  /// with one chunk: for those before it in the first chunk and for those after
  /// it in the last.
  double interleaved() const {
    double longest = 0, most = 0, before = 0, after = sumOver(v_ - 1);
    for (int64_t r = 0; r < p_; ++r) {
      double all = 0;
      for (int64_t c = 0; c < v_; ++c)
        all += work(at(c, r));
      most = std::max(most, all);
      after -= work(at(v_ - 1, r));
      longest = std::max(longest, m_ * all + before + after);
      before += work(at(0, r));
    }
    auto ranks = static_cast<double>(p_);
    // No backward comes back before the forwards are through.
    if (m_ <= ranks)
      return std::max(longest, breadthFirst());
    std::vector<StageDurations> first, last;
    for (int64_t c = 0; c < v_; ++c) {
      first.push_back(at(c, 0));
      last.push_back(at(c, p_ - 1));
    }
    return longest + std::max(0.0, m_ - 2 * ranks) *
                         std::max(0.0, ringOfEnds(p_, first, last) - most);
  }

private:
  static constexpr double kNone = -std::numeric_limits<double>::infinity();

  const StageDurations &at(int64_t chunk, int64_t rank) const {
    return stages_[static_cast<size_t>(chunk * p_ + rank)];
  }
  static double work(const StageDurations &stage) {
    return stage.forward + stage.backward;
  }
  double sumOver(int64_t chunk) const {
    double sum = 0;
    for (int64_t r = 0; r < p_; ++r)
      sum += work(at(chunk, r));
    return sum;
  }

  /// One chunk, in the order in which micro-batches pass its ranks. `done`:
  /// when a rank is through with the chunk before, as the longest path to it
  /// has it; `first` and `last`: when the first and the last micro-batch leave
  /// the last rank.
  template <typename Time>
  void sweep(std::vector<double> &done, double &first, double &last,
             Time time) const {
    for (int64_t i = 0; i < p_; ++i) {
      double here = time(i);
      double &rank = done[static_cast<size_t>(i)];
      first = std::max(first, rank) + here;
      last = std::max(last + here, first + (m_ - 1) * here);
      rank = last;
    }
  }

  int64_t p_, v_;
  double m_;
  std::span<const StageDurations> stages_;
};

/// All chunks of a rank.
struct RankWork {
  double forward = 0, input = 0, weight = 0;
  double total() const { return forward + input + weight; }
};

/// Zero-bubble schedules: the formulas were read off the simulation of equal
/// stages; of others the ramps take the sum over the ranks but the slowest.
double zeroBubble(const ScheduleShape &shape,
                  std::span<const StageDurations> stages) {
  std::vector<RankWork> ranks(static_cast<size_t>(shape.p));
  for (int64_t k = 0; k < shape.stages(); ++k) {
    const StageDurations &stage = stages[static_cast<size_t>(k)];
    RankWork &rank = ranks[static_cast<size_t>(
        rankOfStage(shape.kind, shape.p, shape.v, k))];
    rank.forward += stage.forward;
    rank.input += stage.inputGrad();
    rank.weight += stage.weightGrad();
  }
  double most = 0;
  RankWork mean;
  auto size = static_cast<double>(shape.p);
  for (const RankWork &rank : ranks) {
    most = std::max(most, rank.total());
    mean.forward += rank.forward / size;
    mean.input += rank.input / size;
    mean.weight += rank.weight / size;
  }
  auto others = [&](auto piece) {
    double idle = 0, largest = 0;
    for (const RankWork &rank : ranks) {
      double seconds = std::max(0.0, piece(rank));
      idle += seconds;
      largest = std::max(largest, seconds);
    }
    return idle - largest;
  };
  double idle = others([&](const RankWork &r) {
    return rampPiece(shape.kind, r.forward, r.input, r.weight);
  });
  if (shape.kind == ScheduleKind::ZbV) {
    double late =
        others([](const RankWork &r) { return r.forward - r.input / 2; });
    idle = std::max(idle, late - (mean.forward - mean.input) / 2);
  } else if (shape.kind == ScheduleKind::DualPipeV) {
    double late =
        others([](const RankWork &r) { return r.input - r.weight / 2; });
    idle = std::max(idle, late - mean.forward / 2);
  }
  return static_cast<double>(shape.m) * most + idle;
}

} // namespace

double model::ringOfEnds(int64_t p, std::span<const StageDurations> first,
                         std::span<const StageDurations> last) {
  double sum = 0, slowest = 0;
  int64_t changes = 0;
  bool now = false, began = false;
  size_t v = first.size();
  for (size_t phase = 0; phase < v; ++phase) {
    size_t before = phase == 0 ? v - 1 : phase - 1;
    double top = last[before].forward + last[v - 1 - phase].backward;
    double bottom = first[phase].forward + first[v - 1 - before].backward;
    bool onFirst = bottom > top * (1 + 1e-9);
    if (phase == 0)
      began = onFirst;
    else
      changes += onFirst != now;
    now = onFirst;
    sum += std::max(top, bottom);
    slowest = std::max({slowest, top, bottom});
  }
  changes += now != began;
  return sum - static_cast<double>(changes / 2) * slowest * (4.0 / 3) /
                   static_cast<double>(p);
}

double model::pathOf1F1B(const StageDurations &own, double before, double after,
                         int64_t ranksAfter, int64_t microBatches) {
  auto m = static_cast<double>(microBatches);
  // What it does in the meantime.
  double others = std::min(static_cast<double>(ranksAfter), m - 1);
  double start = std::max(0.0, after - others * own.forward);
  double end = std::max(0.0, after - others * own.backward);
  // With few micro-batches both waits are the same.
  double idle = m - 1 > others ? start + end : std::max(start, end);
  return m * (own.forward + own.backward) + before + idle;
}

double model::rampPiece(ScheduleKind kind, double forward, double input,
                        double weight) {
  switch (kind) {
  case ScheduleKind::ZbH1:
    return std::max({forward, input, forward + input - weight});
  case ScheduleKind::ZbH2:
    // With F + I <= 2 W no rank idles within its span, but ranks start one
    // forward after the other and the step ends for all at once.
    return std::max(forward, forward + input - 2 * weight);
  case ScheduleKind::ZbV:
    // Both chunks of a rank are in its work, hence the halves.
    return std::max({forward / 2, input / 2, input - weight});
  case ScheduleKind::DualPipeV:
    return std::max(forward, forward + input - weight) / 2;
  default:
    return 0;
  }
}

double model::makespanFormula(const ScheduleShape &shape,
                              std::span<const StageDurations> stages) {
  RECKON_CHECK(std::ssize(stages) == shape.stages());
  Stages all(shape, stages);
  switch (shape.kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::Bfs:
    return all.breadthFirst();
  case ScheduleKind::OneFOneB:
    return all.oneForwardOneBackward();
  case ScheduleKind::Interleaved:
    return shape.v == 1 ? all.oneForwardOneBackward() : all.interleaved();
  case ScheduleKind::ZbH1:
  case ScheduleKind::ZbH2:
  case ScheduleKind::ZbV:
  case ScheduleKind::DualPipeV:
    return zeroBubble(shape, stages);
  case ScheduleKind::Synthesized:
  case ScheduleKind::Csv:
    break;
  }
  RECKON_CHECK(false && "no formula for this schedule");
}

/// Whether makespanFormula() equals the simulation of equal stages with these
/// passes of a rank.
static bool exactForEqual(const ScheduleShape &shape, double f, double i,
                          double w) {
  auto [kind, p, v, m, group] = shape;
  bool equal = f == i && i == w;
  switch (kind) {
  case ScheduleKind::GPipe:
  case ScheduleKind::Bfs:
  case ScheduleKind::OneFOneB:
  case ScheduleKind::Interleaved:
    return true;
  case ScheduleKind::ZbH1:
    // Weight gradients fill what 1F1B waits for, as long as they fit.
    return v == 1 && m >= p && w <= f && w <= i;
  case ScheduleKind::ZbH2:
    return equal && m >= p;
  case ScheduleKind::ZbV:
    return equal && m >= 2 * p - 1;
  case ScheduleKind::DualPipeV:
    return equal;
  case ScheduleKind::Synthesized:
  case ScheduleKind::Csv:
    break;
  }
  return false;
}

std::optional<double> model::idleFormula(const ScheduleShape &shape, double f,
                                         double i, double w) {
  if (!whyNotSchedule(shape).empty() || !exactForEqual(shape, f, i, w))
    return std::nullopt;
  auto chunks = static_cast<double>(shape.v);
  std::vector<StageDurations> stages(
      static_cast<size_t>(shape.stages()),
      {f / chunks, (i + w) / chunks, w / chunks});
  return makespanFormula(shape, stages) -
         static_cast<double>(shape.m) * (f + i + w);
}

double model::scheduleBubble(const ScheduleShape &shape) {
  double v = static_cast<double>(shape.v), m = static_cast<double>(shape.m);
  if (auto idle = idleFormula(shape, v, v, v)) // a chunk's passes take 1
    return *idle / (3 * v * m);
  std::vector<StageDurations> units(shape.stages());
  double work = 3 * v * m;
  return (scheduleMakespan(shape, units) - work) / work;
}

double model::scheduleBubble(ScheduleKind kind, int64_t stages,
                             int64_t microBatches) {
  return scheduleBubble(ScheduleShape{kind, stages, 1, microBatches});
}
