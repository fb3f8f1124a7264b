//===- reckon-calibrate.cpp - measure this machine for the time model -----===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// `reckon calibrate -o FILE` becomes this program, so that `reckon` need not
// load the kernels' library. It runs the runtime's own kernels and collectives
// (between two processes of this machine) and writes the constants of
// passes/model/time/efficiency.csv that follow, with what was measured.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Calibrate.h"
#include "frontends/tools/Commands.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <ctime>
#include <fstream>

using namespace reckon;
using namespace reckon::calibrate;

namespace {

int fail(const Error &error) {
  std::fprintf(stderr, "reckon: error: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

std::string today() {
  std::time_t now = std::time(nullptr);
  char text[16];
  std::tm day{};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &day));
  return text;
}

} // namespace

int main(int argc, char **argv) {
  std::string output, accelerator = "cpu";
  int threads = 1;
  double seconds = 0.3;
  CLI::App app{"Measure this machine for the time model: matmuls, attention, "
               "memory, collectives between two processes"};
  app.name("reckon calibrate");
  app.add_option("-o,--output", output, "file to write; cluster.calibration")
      ->required();
  app.add_option("--accelerator", accelerator,
                 "catalogue entry whose nominal figures the results are "
                 "relative to")
      ->capture_default_str();
  app.add_option("--threads", threads, "threads of a process; 0: all")
      ->capture_default_str();
  app.add_option("--seconds", seconds, "least time of each measurement")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 60.0));
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;

  const Accelerator *nominal = findAccelerator(accelerator);
  if (!nominal)
    return fail(makeError(ExitCode::BadSpec,
                          "expected an accelerator of the catalogue, got " +
                              accelerator + "; docs/spec.md lists them"));
  if (!nominal->isCpu())
    return fail(makeError(ExitCode::Environment,
                          "this version measures cpu only, got " + accelerator +
                              "; write the file by hand from "
                              "measurements made there"));

  Calibration result;
  // The child process of the collectives is forked before any thread exists.
  if (Status status = measureCollectives(*nominal, seconds, result); !status)
    return fail(status.error());
  if (Status status = measureKernels(*nominal, threads, seconds, result);
      !status)
    return fail(status.error());

  std::ofstream file(output, std::ios::binary | std::ios::trunc);
  file << toYaml(result, today());
  file.close();
  if (!file)
    return fail(makeError(ExitCode::Environment,
                          "cannot write " + output +
                              "; check the folder and its permissions"));
  for (const Measurement &m : result.measurements)
    std::printf("%-34s %10.4g %s\n", m.what.c_str(), m.value, m.unit.c_str());
  std::printf("wrote %s: set cluster.calibration to it\n", output.c_str());
  return 0;
}
