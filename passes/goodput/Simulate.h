//===- Simulate.h - a job that fails now and then -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_GOODPUT_SIMULATE_H
#define RECKON_PASSES_GOODPUT_SIMULATE_H

#include "passes/goodput/Formula.h"

#include <cstdint>

namespace reckon::goodput {

struct Simulation {
  int64_t failures = 0;
  int64_t checkpoints = 0; ///< that were ready before something failed
  double wall = 0;         ///< seconds
  Shares shares;           ///< measured; they add up to 1
};

/// Event by event until `failures` interruptions are over. They come at
/// exponential times, also during saves and recoveries: an interrupted save is
/// lost with the work before it, an interrupted recovery starts again. A
/// checkpoint counts from `commitDelay` seconds after its save on, for which
/// the write goes on in the background.
///
/// The i-th draw is a function of (seed, i), so a seed gives the same run on
/// every machine.
Simulation simulate(const Terms &terms, double tau, int64_t failures,
                    uint64_t seed, double commitDelay = 0);

} // namespace reckon::goodput

#endif // RECKON_PASSES_GOODPUT_SIMULATE_H
