//===- Simulate.cpp - a job that fails now and then -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/goodput/Simulate.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::goodput;

namespace {

/// Uniform in (0, 1): 52 bits of a hash of seed and counter (the finalizer of
/// SplitMix64), at the middle of their cell so that the logarithm is finite.
double uniform(uint64_t seed, uint64_t counter) {
  auto mix = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  };
  uint64_t bits = mix(mix(seed + 0x9e3779b97f4a7c15ULL) +
                      (counter + 1) * 0x9e3779b97f4a7c15ULL);
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

class Machine {
public:
  Machine(const Terms &terms, double tau, uint64_t seed, double commitDelay)
      : terms_(terms), tau_(tau), seed_(seed), delay_(commitDelay) {
    drawFailure();
  }

  Simulation run(int64_t failures) {
    while (result_.failures < failures)
      if (!spend(tau_, live_) || !spend(terms_.delta, save_))
        recover();
      else
        snapshot();
    // What is not saved at the end is neither useful nor lost: leave the last,
    // unfinished interval out. The loop always ends behind a recovery, so
    // nothing is pending.
    result_.wall = now_;
    Shares &s = result_.shares;
    s.useful = (committed_) / now_;
    s.save = save_ / now_;
    s.rollback = lost_ / now_;
    s.detect = detect_ / now_;
    s.restart = restart_ / now_;
    s.load = load_ / now_;
    return result_;
  }

private:
  void drawFailure() {
    failure_ = now_ - terms_.mtbf * std::log(uniform(seed_, draws_++));
  }

  /// Passes `seconds` into a bucket; false when a failure comes first.
  bool spend(double seconds, double &bucket) {
    double end = now_ + seconds;
    double until = std::min(end, failure_);
    bucket += until - now_;
    now_ = until;
    return end <= failure_;
  }

  void snapshot() {
    commitPending();
    ++result_.checkpoints;
    pending_ = live_;
    pendingAt_ = now_ + delay_;
    commitPending();
  }

  void commitPending() {
    if (pendingAt_ <= now_) {
      committed_ = pending_;
      pendingAt_ = HUGE_VAL;
    }
  }

  void recover() {
    commitPending();
    lost_ += live_ - committed_;
    live_ = committed_;
    pendingAt_ = HUGE_VAL;
    do {
      ++result_.failures;
      drawFailure();
    } while (!spend(terms_.detect, detect_) ||
             !spend(terms_.restart, restart_) || !spend(terms_.load, load_));
  }

  const Terms terms_;
  const double tau_;
  const uint64_t seed_;
  const double delay_;
  uint64_t draws_ = 0;
  double now_ = 0, failure_ = 0;
  /// Work done, work in a checkpoint that counts, and in one that is on its
  /// way and counts from pendingAt_ on.
  double live_ = 0, committed_ = 0, pending_ = 0, pendingAt_ = HUGE_VAL;
  double lost_ = 0, save_ = 0, detect_ = 0, restart_ = 0, load_ = 0;
  Simulation result_;
};

} // namespace

Simulation goodput::simulate(const Terms &terms, double tau, int64_t failures,
                             uint64_t seed, double commitDelay) {
  return Machine(terms, tau, seed, commitDelay).run(failures);
}
