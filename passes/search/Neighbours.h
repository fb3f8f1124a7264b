//===- Neighbours.h - what one step away from the choice would cost -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_NEIGHBOURS_H
#define RECKON_PASSES_SEARCH_NEIGHBOURS_H

#include "passes/search/Search.h"

namespace reckon::search {

/// A choice that differs in one key, and in what follows from it: data_parallel
/// takes what is left of the devices, layers are spread as evenly as possible.
struct Neighbour {
  Limit key = Limit::TensorParallel;
  std::string from, to; ///< values of the key
  /// Why there is no such choice; the rest is then empty.
  std::string impossible;
  model::Choice choice;
  double stepSeconds = 0;
  double moreSeconds = 0; ///< than the choice, evenly laid out as well
  uint64_t peakArena = 0;
  int64_t morePeak = 0; ///< bytes, than the choice
  /// Limits that it breaks, with numbers; empty when it keeps them.
  std::vector<std::string> breaks;
  /// The user's own keys exclude it, or it is only taken when asked for.
  bool excluded = false;
};

/// Each degree one divisor down and up, every other recomputation, ZeRO stage
/// and schedule, the micro-batch one divisor down and up.
std::vector<Neighbour> neighbours(const Spec &spec, const Candidate &choice);

/// A choice that the user asked about, beside the one that was taken.
struct WhyNot {
  std::vector<Setting> settings; ///< as asked
  std::string problem;           ///< it contradicts the spec: the messages
  std::optional<Candidate> other;
  std::optional<Infeasible> infeasible;
};

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_NEIGHBOURS_H
