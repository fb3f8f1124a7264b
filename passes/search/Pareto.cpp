//===- Pareto.cpp - time against money over numbers of nodes --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Pareto.h"

#include "passes/goodput/Analysis.h"
#include "passes/search/Goodput.h"
#include "passes/search/ParallelKeys.h"
#include "passes/search/Report.h"
#include "runtime/base/Activity.h"

#include <cstdio>

using namespace reckon;
using namespace reckon::search;
using Json = nlohmann::ordered_json;

static ParetoRow evaluate(const Spec &spec) {
  ParetoRow row{.nodes = *spec.cluster.nodes, .gpus = spec.cluster.worldSize()};
  SearchResult result =
      search::search(spec, SearchOptions{.top = 1, .runnable = false});
  if (result.candidates.empty())
    return row;
  row.candidate = result.candidates.front();
  goodput::TrainingCost cost = goodput::trainingCost(
      goodput::makeInputs(spec, planFacts(*row.candidate)));
  if (!cost.wallSeconds)
    return row;
  row.goodput = cost.productiveSeconds / *cost.wallSeconds;
  row.trainSeconds = *cost.wallSeconds;
  row.trainDollars = cost.dollars;
  double tokens = static_cast<double>(*spec.training.trainSteps) *
                  static_cast<double>(*spec.training.globalBatchSize) *
                  static_cast<double>(*spec.training.sequenceLength);
  if (cost.dollars > 0)
    row.tokensPerDollar = tokens / cost.dollars;
  return row;
}

std::vector<ParetoRow> search::paretoRows(const Spec &spec) {
  std::vector<ParetoRow> rows;
  int64_t nodes = *spec.cluster.nodes;
  Activity activity("numbers of nodes", 7);
  for (int64_t eighths : {1, 2, 4, 8, 16, 32, 64}) {
    activity.advance();
    if (nodes * eighths % 8)
      continue;
    Spec changed = spec;
    changed.cluster.nodes.value = nodes * eighths / 8;
    if (eighths != 8)
      setKey(changed, Limit::DataParallel, "auto");
    rows.push_back(evaluate(changed));
  }
  for (ParetoRow &row : rows)
    for (const ParetoRow &other : rows) {
      if (row.goodput <= 0 || other.goodput <= 0)
        continue;
      row.dominated |= other.trainSeconds <= row.trainSeconds &&
                       other.trainDollars <= row.trainDollars &&
                       (other.trainSeconds < row.trainSeconds ||
                        other.trainDollars < row.trainDollars);
    }
  return rows;
}

std::string search::paretoText(const std::vector<ParetoRow> &rows) {
  std::string text =
      "\nTime against money by number of nodes (the same batch; failures and "
      "checkpoints included)\n"
      "   nodes   devices      step     tokens/s  goodput   tokens/$   train "
      "(h)"
      "      cost ($)\n";
  char line[512];
  for (const ParetoRow &row : rows) {
    auto nodes = static_cast<long long>(row.nodes);
    auto gpus = static_cast<long long>(row.gpus);
    if (!row.candidate) {
      std::snprintf(line, sizeof line, "%8lld %9lld  nothing fits\n", nodes,
                    gpus);
    } else {
      const Candidate &best = *row.candidate;
      std::snprintf(
          line, sizeof line,
          "%8lld %9lld %7.3f s %12.4g %6.2f %% %10.4g %11.4g %13.0f  %s%s\n",
          nodes, gpus, best.time.step, best.time.tokensPerSecond,
          100 * row.goodput, row.tokensPerDollar, row.trainSeconds / 3600,
          row.trainDollars,
          row.goodput <= 0 ? "no forward progress; "
          : row.dominated  ? "dominated; "
                           : "",
          choiceLine(best.choice).c_str());
    }
    text += line;
  }
  return text;
}

Json search::paretoJson(const std::vector<ParetoRow> &rows) {
  Json list = Json::array();
  for (const ParetoRow &row : rows) {
    Json json = {{"nodes", row.nodes},
                 {"gpus", row.gpus},
                 {"feasible", row.candidate.has_value()}};
    if (row.candidate) {
      json["parallelism"] = choiceJson(row.candidate->choice);
      json["step_s"] = row.candidate->time.step;
      json["tokens_per_s"] = row.candidate->time.tokensPerSecond;
      json["goodput"] = row.goodput;
      json["tokens_per_dollar"] = row.tokensPerDollar;
      json["train_s"] = row.goodput > 0 ? Json(row.trainSeconds) : Json();
      json["train_dollars"] = row.goodput > 0 ? Json(row.trainDollars) : Json();
      json["dominated"] = row.dominated;
    }
    list.push_back(json);
  }
  return list;
}
