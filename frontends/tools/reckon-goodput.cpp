//===- reckon-goodput.cpp - reckon goodput --------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Load.h"
#include "frontends/tools/Commands.h"
#include "frontends/tools/Progress.h"
#include "passes/goodput/Analysis.h"
#include "passes/search/Goodput.h"
#include "passes/search/Report.h"
#include "runtime/base/Os.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace reckon;

int reckon::goodputMain(int argc, char **argv) {
  CLI::App app{"What failures and checkpoints cost this job: the formula, a "
               "simulation, what each improvement would gain, and money."};
  app.name("reckon goodput");
  std::vector<std::string> files, sets;
  std::string format = "text", output;
  goodput::AnalysisOptions options;
  app.add_option("SPEC", files, "YAML files, merged left to right")->required();
  app.add_option("--set", sets, "override one key: KEY=VALUE");
  app.add_option("--format", format, "text or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("-o,--output", output, "write the report to this file");
  app.add_option("--failures", options.failures,
                 "how many each simulation runs through")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000000));
  app.add_option("--seed", options.seeds, "one simulation each")
      ->capture_default_str();
  app.add_option("--mfu", options.mfuPercent,
                 "percent, for the value of a point (default: the plan's)")
      ->check(CLI::Range(0.001, 100.0));
  app.add_option("--days", options.days, "length of the job for that value")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;

  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(files, sets, errors);
  if (!spec) {
    std::fprintf(stderr, "%s\n", spec.error().message.c_str());
    return static_cast<int>(spec.error().code);
  }
  for (const Diagnostic &warning : spec->warnings)
    std::fprintf(stderr, "%s\n", warning.str().c_str());

  search::SearchResult plan = [&] {
    Progress progress("reckon goodput");
    return search::search(*spec, 1);
  }();
  goodput::PlanFacts facts;
  std::string line = "no plan fits; the stall has nothing to hide behind";
  if (!plan.candidates.empty()) {
    facts = search::planFacts(plan.candidates.front());
    line = search::choiceLine(plan.candidates.front().choice);
  } else {
    std::fprintf(stderr, "reckon goodput: warning: nothing fits, so step time "
                         "and training cost are missing; reckon plan says "
                         "why\n");
  }
  goodput::Analysis analysis =
      goodput::analyse(goodput::makeInputs(*spec, facts), options);
  std::string text;
  if (format == "json")
    text = goodput::analysisJson(analysis);
  else
    text = "Goodput of " + *spec->model.name + " on " +
           std::to_string(spec->cluster.worldSize()) + " x " +
           spec->cluster.accelerator->name + " (" + line + ")\n\n" +
           goodput::analysisText(analysis);
  if (output.empty()) {
    std::fputs(text.c_str(), stdout);
  } else if (Status status = systemFiles().write(output, text); !status) {
    std::fprintf(stderr, "reckon goodput: error: %s\n",
                 status.error().message.c_str());
    return static_cast<int>(status.error().code);
  }
  return static_cast<int>(ExitCode::Done);
}
