//===- Formula.h - what failures and checkpoints cost ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// First-order arithmetic of checkpoint intervals: J. W. Young, "A first order
// approximation to the optimum checkpoint interval" (1974), with the time that
// a restart takes added. All times in seconds, shares as fractions of 1.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_GOODPUT_FORMULA_H
#define RECKON_PASSES_GOODPUT_FORMULA_H

#include <optional>

namespace reckon::goodput {

/// What decides the share of time that trains.
struct Terms {
  double mtbf = 0;    ///< M: mean time between interruptions of the whole job
  double delta = 0;   ///< training stands still for so long per checkpoint
  double detect = 0;  ///< T_d: from a failure until it is noticed
  double restart = 0; ///< T_r: until the processes are up again
  double load = 0;    ///< T_l: until the checkpoint is loaded

  /// T: training stands still for so long per failure, lost work aside.
  double recovery() const { return detect + restart + load; }
};

/// M = M_gpu / N, both in the same unit.
double jobMtbf(double gpuMtbf, double gpus);

/// w(tau) = delta/tau + tau/(2M): waste to first order, restarts aside.
double firstOrderWaste(const Terms &terms, double tau);
/// sqrt(2 delta M), the minimum of w.
double youngInterval(const Terms &terms);
/// sqrt(2 delta / M) = w(youngInterval). From 1 on the job never finishes.
double leastWaste(const Terms &terms);
/// sqrt(delta^2 + 2 delta (M - T)) - delta: the maximum of goodput(). Nothing
/// when M <= T, where no interval makes progress.
std::optional<double> bestInterval(const Terms &terms);

/// G = (1 - (T + tau/2)/M) / (1 + delta/tau): the share of wall time that
/// trains. Not positive where more is lost than done.
double goodput(const Terms &terms, double tau);

/// Without the first-order assumption, for exponential failures that also
/// strike during saves and recoveries: tau / E with
/// E = M e^(T/M) (e^((tau + delta)/M) - 1), the mean time to get tau seconds
/// of work saved. Renewal argument: an attempt of tau + delta seconds must pass
/// undisturbed, and so must each recovery of T.
double renewalGoodput(const Terms &terms, double tau);

/// Shares of wall time; they add up to 1.
struct Shares {
  double useful = 0;
  double save = 0;     ///< G delta / tau
  double rollback = 0; ///< work done twice: tau / (2M)
  double detect = 0;   ///< T_d / M
  double restart = 0;
  double load = 0;

  double sum() const {
    return useful + save + rollback + detect + restart + load;
  }
};

Shares shares(const Terms &terms, double tau);

/// Whether the job gets anywhere at its best interval.
bool makesProgress(const Terms &terms);

} // namespace reckon::goodput

#endif // RECKON_PASSES_GOODPUT_FORMULA_H
