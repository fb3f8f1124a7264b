//===- reckon-plan.cpp - reckon plan --------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Load.h"
#include "frontends/tools/Commands.h"
#include "frontends/tools/PlanHtml.h"
#include "frontends/tools/Progress.h"
#include "passes/model/schedule/Given.h"
#include "passes/model/time/TimeModel.h"
#include "passes/search/Report.h"
#include "runtime/base/Os.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <optional>
#include <sstream>

using namespace reckon;

namespace {

/// What the same spec gives with `asked` (`tensor_parallel=16`; keys without a
/// section are of parallelism) set on top, which `changed` then is.
search::WhyNot askWhyNot(const std::vector<std::string> &files,
                         std::vector<std::string> sets,
                         const std::vector<std::string> &asked, Spec &changed) {
  search::WhyNot why;
  for (const std::string &each : asked) {
    size_t equals = each.find('=');
    std::string key = each.substr(0, equals);
    if (key.find('.') == std::string::npos)
      key = "parallelism." + key;
    std::string value =
        equals == std::string::npos ? "" : each.substr(equals + 1);
    why.settings.push_back({key, value, ""});
    sets.push_back(key + "=" + value);
  }
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(files, sets, errors);
  if (!spec) {
    why.problem = spec.error().message;
    return why;
  }
  changed = *spec;
  search::SearchResult result = search::searchAndExplain(changed, 1);
  why.infeasible = result.infeasible;
  if (!result.candidates.empty())
    why.other = result.candidates.front();
  return why;
}

/// Evaluates `tensor_parallel=8,pipeline_parallel=4`: the spec with these keys
/// fixed, whatever the limits.
search::Compared compare(const std::vector<std::string> &files,
                         std::vector<std::string> sets,
                         const std::string &asked) {
  search::Compared compared;
  compared.name = asked;
  std::istringstream parts(asked);
  for (std::string part; std::getline(parts, part, ',');)
    sets.push_back(part.find('.') < part.find('=') ? part
                                                   : "parallelism." + part);
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(files, sets, errors);
  if (!spec) {
    compared.problem = spec.error().message;
    return compared;
  }
  search::SearchOptions options;
  options.runnable = false;
  search::SearchResult within = search::search(*spec, options);
  if (within.candidates.empty()) {
    // Shown all the same, with what it breaks.
    compared.problem = "breaks a limit";
    spec->constraints.memoryLimitGib.value = 1e6;
    spec->constraints.maxBubble.value = 1e9;
    within = search::search(*spec, options);
  }
  if (within.candidates.empty())
    compared.problem = "no combination with these values divides";
  else
    compared.candidate = within.candidates.front();
  return compared;
}

} // namespace

int reckon::planMain(int argc, char **argv) {
  CLI::App app{"Chooses how a job is spread, or evaluates a fixed choice, and "
               "explains. Exit code 3: nothing fits."};
  app.name("reckon plan");
  std::vector<std::string> files, sets;
  std::string format = "text", output;
  std::vector<std::string> asked;
  int64_t top = 0;
  app.add_option("SPEC", files, "YAML files, merged left to right")->required();
  app.add_option("--set", sets, "override one key: KEY=VALUE");
  app.add_option("--format", format, "text, json or html")
      ->capture_default_str();
  app.add_option("-o,--output", output, "write the report to this file");
  app.add_option("--top", top, "how many choices (default: search.top)")
      ->check(CLI::PositiveNumber);
  std::string smtFolder;
  app.add_option("--dump-smt", smtFolder,
                 "write the solver's questions to this folder, as SMT-LIB");
  bool pareto = false;
  app.add_flag("--pareto", pareto,
               "time against money from 1/8 to 8 times the nodes");
  app.add_option("--why-not", asked,
                 "how KEY=VALUE loses: tensor_parallel=16; several together");
  std::vector<std::string> named;
  app.add_option("--compare", named,
                 "show KEY=VALUE,KEY=VALUE,... beside the choice; several "
                 "times for several");
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  for (const std::string &each : asked)
    if (each.find('=') == std::string::npos || each.front() == '=') {
      std::fprintf(stderr,
                   "reckon plan: error: expected --why-not KEY=VALUE, got %s; "
                   "such as --why-not tensor_parallel=16\n",
                   each.c_str());
      return static_cast<int>(ExitCode::BadSpec);
    }
  if (format != "text" && format != "json" && format != "html") {
    std::fprintf(
        stderr,
        "reckon plan: error: expected --format text, json or html, got %s\n",
        format.c_str());
    return static_cast<int>(ExitCode::BadSpec);
  }

  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(files, sets, errors);
  if (!spec) {
    std::fprintf(stderr, "%s\n", spec.error().message.c_str());
    return static_cast<int>(spec.error().code);
  }
  if (auto schedule = model::readScheduleFile(*spec); !schedule.ok()) {
    std::fprintf(stderr, "%s\n", schedule.error().message.c_str());
    return static_cast<int>(schedule.error().code);
  }
  for (const Diagnostic &warning : spec->warnings)
    std::fprintf(stderr, "%s\n", warning.str().c_str());
  // An efficiency profile that is not in the data file, for one.
  for (const std::string &text :
       model::TimeModel(model::makeJob(*spec)).warnings())
    std::fprintf(
        stderr, "%s\n",
        warningAt(spec->cluster.efficiencyProfile.loc, text).str().c_str());

  std::optional<Progress> progress(std::in_place, "reckon plan");
  Clock &clock = systemClock();
  double start = clock.seconds();
  search::SearchOptions options;
  options.top = top ? top : *spec->search.top;
  options.smtFolder = smtFolder;
  search::SearchResult result = search::searchAndExplain(*spec, options);
  if (!result.smtStatus) {
    progress.reset();
    std::fprintf(stderr, "reckon plan: error: %s\n",
                 result.smtStatus.error().message.c_str());
    return static_cast<int>(result.smtStatus.error().code);
  }
  for (const std::string &each : named)
    result.compared.push_back(compare(files, sets, each));
  search::ReportInput report{*spec, result, clock.seconds() - start};
  if (!result.candidates.empty())
    report.neighbours = search::neighbours(*spec, result.candidates.front());
  if (pareto)
    report.pareto = search::paretoRows(*spec);
  search::WhyNot why;
  Spec changed;
  if (!asked.empty()) {
    why = askWhyNot(files, sets, asked, changed);
    report.whyNot = &why;
  }
  progress.reset();
  std::string text = format == "json"   ? search::reportJson(report)
                     : format == "html" ? planHtml(report)
                                        : search::reportText(report);
  if (format == "text" && !report.neighbours.empty())
    text += search::neighboursText(report.neighbours);
  if (format == "text" && pareto)
    text += search::paretoText(report.pareto);
  if (format == "text" && report.whyNot)
    text += search::whyNotText(why, result, *spec, changed);
  if (output.empty()) {
    std::fputs(text.c_str(), stdout);
  } else if (Status status = systemFiles().write(output, text); !status) {
    std::fprintf(stderr, "reckon plan: error: %s\n",
                 status.error().message.c_str());
    return static_cast<int>(status.error().code);
  }
  if (!result.infeasible)
    return static_cast<int>(ExitCode::Done);
  std::fputs(search::infeasibleText(report).c_str(), stderr);
  return static_cast<int>(ExitCode::Infeasible);
}
