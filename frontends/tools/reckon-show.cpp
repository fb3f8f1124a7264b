//===- reckon-show.cpp - reckon show --------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Reads a plan directory back and prints one view of it. Everything comes from
// the files; no MLIR, no spec, no planner.
//
//===----------------------------------------------------------------------===//

#include "frontends/tools/Commands.h"
#include "frontends/tools/reckon-show-against.h"
#include "frontends/tools/reckon-show-views.h"
#include "runtime/plan/PlanIO.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace reckon;
using namespace reckon::show;

namespace {

struct Arguments {
  std::string directory;
  std::string against;
  int64_t stage = -1;
  int64_t rank = -1;
  std::string what = "summary";
  std::string format = "text";
};

int fail(const Error &error) {
  std::fprintf(stderr, "reckon show: error: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

Result<Format> parseFormat(const std::string &what, const std::string &format) {
  if (format == "text")
    return Format::Text;
  if (format == "json")
    return Format::Json;
  if (format == "csv") {
    if (what == "schedule" || what == "memory" || what == "timeline" ||
        what == "comm")
      return Format::Csv;
    return makeError(ExitCode::BadSpec,
                     "--format csv is for --what schedule, memory, timeline or "
                     "comm, "
                     "got --what " +
                         what + "; use text or json");
  }
  if (format == "svg") {
    if (what == "memory" || what == "timeline")
      return Format::Svg;
    return makeError(ExitCode::BadSpec,
                     "--format svg is for --what memory, got --what " + what +
                         "; use text or json");
  }
  if (format == "cu") {
    if (what == "program")
      return Format::Cu;
    return makeError(ExitCode::BadSpec,
                     "--format cu is for --what program, got --what " + what +
                         "; use text or json");
  }
  if (format == "perfetto") {
    if (what == "summary" || what == "timeline" || what == "schedule")
      return Format::Perfetto;
    return makeError(ExitCode::BadSpec,
                     "--format perfetto is for --what timeline, got --what " +
                         what + "; leave --what out");
  }
  return makeError(ExitCode::BadSpec,
                   "expected --format text, csv, json, svg, cu or "
                   "perfetto, got " +
                       format);
}

Result<LoadedPlan> load(const Arguments &arguments, int64_t onlyStage) {
  FileSystem &files = systemFiles();
  auto manifest = plan::readPlanManifest(files, arguments.directory);
  if (!manifest)
    return manifest.error();
  LoadedPlan loaded;
  loaded.manifest = std::move(*manifest);
  auto count = static_cast<int64_t>(loaded.manifest.stages.size());
  if (onlyStage >= count)
    return makeError(ExitCode::BadSpec, "expected --stage below " +
                                            std::to_string(count) + ", got " +
                                            std::to_string(onlyStage));
  for (int64_t stage = 0; stage < count; ++stage) {
    if (onlyStage >= 0 && stage != onlyStage)
      continue;
    auto file = plan::readPlanStage(files, arguments.directory, loaded.manifest,
                                    static_cast<unsigned>(stage));
    if (!file)
      return file.error();
    loaded.stages.push_back(std::move(*file));
  }
  return loaded;
}

Result<std::string> render(const Arguments &arguments) {
  auto format = parseFormat(arguments.what, arguments.format);
  if (!format)
    return format.error();
  if (!arguments.against.empty()) {
    if (*format != Format::Text && *format != Format::Json)
      return makeError(ExitCode::BadSpec,
                       "expected --format text or json with --against, got " +
                           arguments.format);
    return against(arguments.directory, arguments.against,
                   *format == Format::Json);
  }

  int64_t stage = arguments.stage;
  std::optional<plan::Coord> coord;
  if (arguments.rank >= 0) {
    auto manifest = plan::readPlanManifest(systemFiles(), arguments.directory);
    if (!manifest)
      return manifest.error();
    int64_t world = plan::worldSize(manifest->mesh);
    if (arguments.rank >= world)
      return makeError(ExitCode::BadSpec, "expected --rank below " +
                                              std::to_string(world) + ", got " +
                                              std::to_string(arguments.rank));
    coord = plan::coordOf(manifest->mesh, arguments.rank);
    if (stage >= 0 && stage != coord->pp)
      return makeError(ExitCode::BadSpec,
                       "rank " + std::to_string(arguments.rank) +
                           " is on stage " + std::to_string(coord->pp) +
                           ", not on stage " + std::to_string(stage) +
                           "; leave --stage out");
    stage = coord->pp;
  }
  // A timetable needs every stage.
  bool drawn = *format == Format::Svg || arguments.what == "timeline";
  bool trace = *format == Format::Perfetto;
  bool all = arguments.what == "schedule" || drawn || trace;
  auto loaded = load(arguments, all ? -1 : stage);
  if (!loaded)
    return loaded.error();
  std::optional<unsigned> only;
  if (stage >= 0)
    only = static_cast<unsigned>(stage);
  if (trace)
    return perfetto(*loaded, arguments.directory, only,
                    arguments.rank < 0 ? std::nullopt
                                       : std::optional(arguments.rank));
  if (drawn)
    return timeline(*loaded, *format, only);
  if (arguments.what == "summary")
    return summary(*loaded, *format);
  if (arguments.what == "program")
    return program(*loaded, *format, coord);
  if (arguments.what == "memory")
    return memory(*loaded, *format);
  if (arguments.what == "comm")
    return communication(*loaded, *format);
  if (arguments.what == "schedule")
    return schedule(*loaded, *format);
  return makeError(ExitCode::BadSpec,
                   "expected --what summary, program, memory, timeline, "
                   "schedule or comm, got " +
                       arguments.what);
}

} // namespace

int reckon::showMain(int argc, char **argv) {
  Arguments arguments;
  CLI::App app("Reads a plan directory back.", "reckon show");
  app.add_option("PLAN_DIR", arguments.directory, "plan directory")->required();
  app.add_option("--stage", arguments.stage, "only this pipeline stage")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--rank", arguments.rank,
                 "this rank's stage, with its offsets")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--what", arguments.what,
                 "summary, program, memory, timeline, schedule or comm");
  app.add_option("--format", arguments.format,
                 "text, csv, json, svg (memory over time), cu (--what program "
                 "as CUDA calls) or perfetto (predicted streams, for "
                 "ui.perfetto.dev)");
  app.add_option("--against", arguments.against,
                 "what differs from this plan directory; both may be reports "
                 "of reckon plan --format json instead");
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  Result<std::string> text = render(arguments);
  if (!text)
    return fail(text.error());
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}
