//===- reckon-export.cpp - reckon export ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/export/Export.h"
#include "frontends/spec/Load.h"
#include "frontends/tools/Commands.h"
#include "frontends/tools/Progress.h"
#include "passes/model/schedule/Given.h"
#include "passes/search/Report.h"
#include "runtime/base/Os.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace reckon;
using namespace reckon::exports;

static int fail(ExitCode code, const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return static_cast<int>(code);
}

/// Into `folder`, or to the standard output with a line before each file.
static Status writeFiles(const std::vector<ExportFile> &files,
                         const std::string &folder) {
  if (folder.empty()) {
    for (const ExportFile &file : files)
      std::printf("==> %s <==\n%s", file.name.c_str(), file.text.c_str());
    return {};
  }
  if (Status status = systemFiles().createDirectories(folder); !status)
    return status;
  for (const ExportFile &file : files) {
    std::string path = folder + "/" + file.name;
    if (Status status = systemFiles().write(path, file.text); !status)
      return status;
    std::printf("%s\n", path.c_str());
  }
  return {};
}

int reckon::exportMain(int argc, char **argv) {
  CLI::App app{"Writes the best choice, or a fixed one, as the configuration "
               "of another framework. Exit code 3: nothing fits."};
  app.name("reckon export");
  std::vector<std::string> files, sets;
  std::string to, folder;
  app.add_option("SPEC", files, "YAML files, merged left to right")->required();
  app.add_option("--to", to, "megatron, deepspeed or torchtitan")->required();
  app.add_option("-o,--output", folder, "folder for the files");
  app.add_option("--set", sets, "override one key: KEY=VALUE");
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  std::optional<Target> target = parseTarget(to);
  if (!target)
    return fail(ExitCode::BadSpec,
                "reckon export: error: expected --to megatron, deepspeed or "
                "torchtitan, got " +
                    to);

  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec(files, sets, errors);
  if (!spec)
    return fail(spec.error().code, spec.error().message);
  if (auto schedule = model::readScheduleFile(*spec); !schedule.ok())
    return fail(schedule.error().code, schedule.error().message);
  for (const Diagnostic &warning : spec->warnings)
    std::fprintf(stderr, "%s\n", warning.str().c_str());

  // The space is what the target can run, and all of it.
  narrowToTarget(*target, *spec);
  Clock &clock = systemClock();
  double start = clock.seconds();
  search::SearchResult result = [&] {
    Progress progress("reckon export");
    return search::searchAndExplain(*spec, 1);
  }();
  if (result.infeasible) {
    search::ReportInput report{*spec, result, clock.seconds() - start};
    return fail(ExitCode::Infeasible, search::infeasibleText(report));
  }

  ExportInput input{*spec, result.candidates.front().choice};
  Exported out = exportTo(*target, input);
  if (!out.errors.empty())
    return fail(ExitCode::BadSpec, joinDiagnostics(out.errors));
  std::string accounting = accountingText(*target, input);
  out.files.push_back({"accounting.txt", accounting});
  if (Status status = writeFiles(out.files, folder); !status)
    return fail(status.error().code,
                "reckon export: error: " + status.error().message);
  if (!folder.empty()) {
    for (const std::string &line : out.notExpressed)
      std::printf("not expressed: %s\n", line.c_str());
    std::fputs(accounting.c_str(), stdout);
  }
  return static_cast<int>(ExitCode::Done);
}
