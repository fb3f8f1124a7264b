//===- Pareto.h - time against money over numbers of nodes ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_PARETO_H
#define RECKON_PASSES_SEARCH_PARETO_H

#include "passes/search/Search.h"

#include <nlohmann/json.hpp>

namespace reckon::search {

/// The best plan on one number of nodes, the batch unchanged.
struct ParetoRow {
  int64_t nodes = 0, gpus = 0;
  std::optional<Candidate> candidate; ///< nothing fits otherwise
  double goodput = 0;                 ///< 0: no forward progress
  double tokensPerDollar = 0;         ///< failures and checkpoints included
  double trainSeconds = 0, trainDollars = 0; ///< of train_steps, expected
  /// Another row is not slower and not dearer, and one of both better.
  bool dominated = false;
};

/// From an eighth of the spec's nodes to eight times as many, by factors of
/// two; data_parallel is left open, since it follows from the nodes.
std::vector<ParetoRow> paretoRows(const Spec &spec);

std::string paretoText(const std::vector<ParetoRow> &rows);
nlohmann::ordered_json paretoJson(const std::vector<ParetoRow> &rows);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_PARETO_H
