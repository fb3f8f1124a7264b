//===- Published.cpp - the planner's predictions against published runs ---===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The acceptance test of accuracy runs `reckon plan` once a row; this does the
// same in one process, in well under a second, for fitting and for looking at
// single rows. `--table` replaces the built-in constants, `--rows` prints one
// line a row for tests/accuracy/fit.py.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Accountant.h"
#include "passes/model/account/Risk.h"
#include "passes/model/time/TimeModel.h"
#include "tests/accuracy/PublishedRow.h"
#include "tests/accuracy/Scores.h"

#include <CLI/CLI.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

using namespace reckon;
using namespace reckon::accuracy;

namespace {

struct Answer {
  bool evaluated = false;
  bool fits = true;
  double step = 0;
  double peakGib = 0; ///< with the reserve
  double reserveGib = 0;
  double overLimit = 0; ///< predicted over the limit, of what needs least
  model::Choice choice;
};

struct Options {
  std::string runs, sweeps, table, only;
  bool rows = false, verbose = false, explain = false, rename = false;

  Case read(const Row &row) const {
    Case one = makeCase(row);
    if (rename)
      one.job.model.name = "a model";
    return one;
  }
};

/// The fastest choice among what a row leaves open, within the memory limit or
/// without one.
Answer evaluate(Case &row, const std::vector<model::EfficiencyRow> &table,
                bool limited) {
  Answer best;
  if (!row.why.empty())
    return best;
  model::TimeModel time(row.job, table);
  model::Accountant accountant(row.job);
  double least = INFINITY;
  auto consider = [&](const model::Choice &choice, bool limit) {
    uint64_t arena = accountant.peak(choice).arena;
    least = std::min(least, double(arena) / double(row.job.limitBytes));
    bool fits = arena <= row.job.limitBytes;
    if (limit && !fits)
      return false;
    double step = time.quickStep(choice);
    if (!best.evaluated || step < best.step)
      best = {.evaluated = true,
              .fits = fits,
              .step = step,
              .peakGib = double(arena + row.job.reserveBytes) / 1073741824.0,
              .reserveGib = double(row.job.reserveBytes) / 1073741824.0,
              .choice = choice};
    return true;
  };
  for (bool limit : {true, false}) {
    model::Choice choice = row.choice;
    choice.layout = model::defaultLayout(row.job, accountant.profile(), choice);
    consider(choice, limit);
    if (row.recomputeOpen) {
      choice.recompute = Recompute::Selective;
      consider(choice, limit);
      // The fewest layers of each rank that must be recomputed, chunk by
      // chunk: the first one holds most micro-batches.
      choice.recompute = Recompute::Full;
      choice.recomputeLayers.assign(choice.layout.size(), 0);
      bool found = false;
      for (size_t chunk = 0; chunk < size_t(choice.v) && !found; ++chunk) {
        auto begin = choice.layout.begin() + std::ptrdiff_t(chunk) * choice.pp;
        int64_t most = *std::max_element(begin, begin + choice.pp);
        for (int64_t again = 1; again <= most && !found; ++again) {
          for (size_t k = chunk * size_t(choice.pp);
               k < (chunk + 1) * size_t(choice.pp); ++k)
            choice.recomputeLayers[k] = std::min(again, choice.layout[k]);
          found = consider(choice, limit);
        }
      }
    }
    if (best.evaluated || limited)
      break;
  }
  if (!best.evaluated && limited) {
    best.evaluated = true;
    best.fits = false;
  }
  best.overLimit = least;
  return best;
}

std::string family(const Row &row) {
  std::string gpu = row.at("gpu");
  std::string name = row.at("framework");
  return name.substr(0, name.find(" (")) + " " + gpu.substr(0, gpu.find('-'));
}

void explain(const Row &row, const model::TimeModel &time,
             const Answer &answer) {
  model::StepTime t = time.step(answer.choice);
  int64_t again = answer.choice.recompute == Recompute::None ? 0 : -1;
  if (!answer.choice.recomputeLayers.empty())
    again = answer.choice.recomputeLayers.front();
  std::printf("  peak %.1f GiB, recompute %s (%lld)\n", answer.peakGib,
              toString(answer.choice.recompute), (long long)again);
  std::printf("  %s: predicted %.4f of %s; compute %.4f bubble %.4f exposed "
              "%.4f optimizer %.4f other %.4f\n",
              row.at("id").c_str(), t.step, row.at("step_time_s").c_str(),
              t.compute, t.bubble, t.exposedCommunication, t.optimizer,
              t.other);
  for (const model::MfuLoss &loss : t.losses)
    std::printf("    %-32s %8.4f s %6.2f\n", loss.item.c_str(), loss.seconds,
                loss.points);
  for (const model::CommunicationTime &c : t.communication)
    std::printf("    %-10s %-26s %-10s %8.3f GB %8.4f s exposed %8.4f\n",
                c.dimension.c_str(), c.collective.c_str(), c.link.c_str(),
                c.bytesPerStep / 1e9, c.seconds, c.exposed);
}

void scoreRuns(const Options &options,
               const std::vector<model::EfficiencyRow> &table) {
  std::vector<double> times, absolute, memories;
  std::map<std::string, std::vector<double>> families;
  std::vector<std::tuple<double, std::string, double, double>> worst,
      worstMemory;
  int able = 0, evaluated = 0;
  std::vector<Row> rows = readCsv(options.runs);
  for (const Row &row : rows) {
    if (!options.only.empty() &&
        row.at("id").find(options.only) == std::string::npos)
      continue;
    Case one = options.read(row);
    if (one.why.rfind("row lacks", 0) != 0 && one.why != "optimizer offload")
      ++able;
    Answer answer = evaluate(one, table, false);
    if (!answer.evaluated) {
      if (options.verbose)
        std::printf("  skipped %s: %s\n", row.at("id").c_str(),
                    one.why.c_str());
      continue;
    }
    ++evaluated;
    std::optional<double> measured = number(row, "step_time_s");
    std::optional<double> peak = number(row, "peak_mem_gib");
    if (row.at("framework") == "nanotron" && *number(row, "num_gpus") >= 512)
      measured.reset();
    bool driver = row.at("notes").find("nvidia-smi") != std::string::npos;
    double gib = answer.peakGib - (driver ? 0 : answer.reserveGib);
    if (options.rows)
      std::printf("%s\t%s\t%s\t%s\t%s\t%.9g\t%.9g\t%.6g\t%.6g\n",
                  row.at("id").c_str(), row.at("source").c_str(),
                  row.at("model").c_str(),
                  model::factorKey(one.job,
                                   model::profileFamily(one.job.profile, table))
                      .c_str(),
                  row.at("framework").c_str(), answer.step,
                  measured.value_or(0), gib, peak.value_or(0));
    if (options.explain)
      explain(row, model::TimeModel(one.job, table), answer);
    if (measured) {
      double error = answer.step / *measured - 1;
      times.push_back(error);
      absolute.push_back(std::abs(error));
      families[family(row)].push_back(error);
      worst.emplace_back(std::abs(error), row.at("id"), answer.step, *measured);
    }
    if (peak) {
      memories.push_back(gib / *peak - 1);
      worstMemory.emplace_back(std::abs(gib / *peak - 1), row.at("id"), gib,
                               *peak);
    }
  }
  if (options.rows)
    return;
  auto within = [&](double bound) {
    double count = 0;
    for (double a : absolute)
      count += a <= bound;
    return 100 * count / double(std::max<size_t>(1, absolute.size()));
  };
  std::printf("runs: %zu rows, evaluated %.1f%%, %zu with a step time\n",
              rows.size(), 100.0 * evaluated / std::max(1, able), times.size());
  std::printf("time: median error %.2f%%, p90 %.2f%%, median bias %+.2f%%; "
              "within 10 %% %.0f%%, within 20 %% %.0f%%\n",
              100 * median(absolute), 100 * quantile(absolute, 0.9),
              100 * median(times), within(0.1), within(0.2));
  std::vector<std::pair<size_t, std::string>> order;
  for (const auto &[name, errors] : families)
    order.emplace_back(errors.size(), name);
  std::sort(order.rbegin(), order.rend());
  for (const auto &[count, name] : order) {
    std::vector<double> errors = families[name], size;
    for (double e : errors)
      size.push_back(std::abs(e));
    std::printf("  %-38s n=%3zu median %.1f%% p90 %.1f%% bias %+.1f%%\n",
                name.c_str(), count, 100 * median(size),
                100 * quantile(size, 0.9), 100 * median(errors));
  }
  std::vector<double> size;
  double under = 0;
  for (double error : memories) {
    size.push_back(std::abs(error));
    under += error < -0.05;
  }
  if (!memories.empty())
    std::printf("memory: median error %.2f%%, p90 %.2f%%, under by more than "
                "5 %% on %.0f%% of rows\n",
                100 * median(size), 100 * quantile(size, 0.9),
                100 * under / double(memories.size()));
  if (!options.verbose)
    return;
  std::sort(worst.rbegin(), worst.rend());
  for (size_t i = 0; i < std::min<size_t>(40, worst.size()); ++i) {
    const auto &[error, id, predicted, measured] = worst[i];
    std::printf("  worst %s: predicted %.3f s, measured %.3f s (%.2f)\n",
                id.c_str(), predicted, measured, predicted / measured);
  }
  std::sort(worstMemory.rbegin(), worstMemory.rend());
  for (size_t i = 0; i < std::min<size_t>(25, worstMemory.size()); ++i) {
    const auto &[error, id, predicted, measured] = worstMemory[i];
    std::printf("  worst %s: predicted %.1f GiB, measured %.1f GiB (%.2f)\n",
                id.c_str(), predicted, measured, predicted / measured);
  }
}

void scoreSweeps(const Options &options,
                 const std::vector<model::EfficiencyRow> &table) {
  std::map<std::string, std::vector<Row>> groups;
  for (Row &row : readCsv(options.sweeps))
    if (row.at("status") == "ok" || row.at("status") == "oom_error")
      groups[row.at("group")].push_back(std::move(row));
  int ok[2] = {0, 0}, oom[2] = {0, 0}; // by whether we say that it fits
  // The counts of memory_risk.csv, again: runs and failures by band.
  std::vector<model::MemoryRisk> bands =
      *model::memoryRisks(model::memoryRiskTable());
  std::vector<std::pair<int, int>> counted(bands.size());
  std::vector<double> correlations, regrets;
  int swept = 0, answered = 0;
  for (const auto &[name, members] : groups) {
    std::vector<double> predicted, measured, ratio;
    for (const Row &row : members) {
      ++swept;
      Case one = options.read(row);
      Answer answer = evaluate(one, table, true);
      if (!answer.evaluated)
        continue;
      ++answered;
      bool ran = row.at("status") == "ok";
      ++(ran ? ok : oom)[answer.fits];
      if (row.at("source").starts_with("Hagemann"))
        for (size_t i = 0; i < bands.size(); ++i)
          if (answer.overLimit >= bands[i].from &&
              answer.overLimit < bands[i].to) {
            counted[i].first += !ran;
            ++counted[i].second;
          }
      std::optional<double> seconds = number(row, "step_time_s");
      if (options.rows)
        std::printf("%s\t%s\t%s\t%d\t%.9g\t%.9g\n", row.at("id").c_str(),
                    name.c_str(), row.at("status").c_str(), answer.fits,
                    answer.step, seconds.value_or(0));
      if (ran && answer.fits && seconds) {
        double scale = *number(row, "global_batch_sequences");
        predicted.push_back(scale / answer.step);
        measured.push_back(scale / *seconds);
        ratio.push_back(answer.step / *seconds);
      }
    }
    if (predicted.size() < 5)
      continue;
    std::optional<double> rho = spearman(predicted, measured);
    size_t choice = std::max_element(predicted.begin(), predicted.end()) -
                    predicted.begin();
    double most = *std::max_element(measured.begin(), measured.end());
    double regret = 1 - measured[choice] / most;
    if (rho)
      correlations.push_back(*rho);
    regrets.push_back(regret);
    if (options.verbose)
      std::printf("  %-60s n=%3zu Spearman %.3f regret %5.1f%% ratio %.2f\n",
                  name.c_str(), predicted.size(), rho.value_or(0), 100 * regret,
                  median(ratio));
  }
  if (options.rows)
    return;
  std::printf("fit: %d of %d evaluated; recall of out-of-memory %.1f%%, "
              "precision %.1f%%\n",
              answered, swept, 100.0 * oom[0] / std::max(1, oom[0] + oom[1]),
              100.0 * oom[0] / std::max(1, oom[0] + ok[0]));
  for (size_t i = 0; i < bands.size(); ++i)
    std::printf("risk: predicted %.3g to %.3g of the limit: %d of %d failed, "
                "memory_risk.csv has %lld of %lld\n",
                bands[i].from, bands[i].to, counted[i].first, counted[i].second,
                (long long)bands[i].failed, (long long)bands[i].runs);
  std::printf("rank: median Spearman %.3f, regret median %.1f%%, p90 %.1f%% "
              "over %zu groups\n",
              median(correlations), 100 * median(regrets),
              100 * quantile(regrets, 0.9), regrets.size());
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Scores predictions against published runs");
  app.add_option("--runs", options.runs, "table of runs")->required();
  app.add_option("--sweeps", options.sweeps, "table of sweeps");
  app.add_option("--table", options.table, "constants instead of the built-in");
  app.add_option("--only", options.only, "rows whose id contains this");
  app.add_flag("--rows", options.rows, "print a line a row");
  app.add_flag("--rename", options.rename,
               "replace the names of models once their sizes are read");
  app.add_flag("--verbose", options.verbose, "worst rows and all groups");
  app.add_flag("--explain", options.explain, "the parts of each row's step");
  CLI11_PARSE(app, argc, argv);
  std::vector<model::EfficiencyRow> table = model::efficiencyTable();
  if (!options.table.empty()) {
    std::ifstream file(options.table, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    auto parsed = model::parseEfficiency(text);
    if (!parsed.ok()) {
      std::fprintf(stderr, "%s\n", parsed.error().message.c_str());
      return 2;
    }
    table = *parsed;
  }
  scoreRuns(options, table);
  if (!options.sweeps.empty())
    scoreSweeps(options, table);
  return 0;
}
