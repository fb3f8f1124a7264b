//===- reckon-import.cpp - reckon import ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/import/hf/Import.h"
#include "frontends/import/megatron/Import.h"
#include "frontends/tools/Commands.h"
#include "runtime/base/Os.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace reckon;

static int fail(ExitCode code, const std::string &message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return static_cast<int>(code);
}

int reckon::importMain(int argc, char **argv) {
  CLI::App app{"Prints the spec that a configuration of another framework "
               "means."};
  app.name("reckon import");
  std::string from, path, accelerator, output;
  app.add_option("--from", from, "megatron or hf")->required();
  app.add_option("PATH", path,
                 "Megatron arguments or a script with them; a config.json")
      ->required();
  app.add_option("--accelerator", accelerator,
                 "megatron: the accelerator, which no argument names");
  app.add_option("-o,--output", output, "write the spec to this file");
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  if (from != "megatron" && from != "hf")
    return fail(ExitCode::BadSpec,
                "reckon import: error: expected --from megatron or hf, got " +
                    from);
  Result<std::string> text = systemFiles().read(path);
  if (!text)
    return fail(ExitCode::Environment,
                "reckon import: error: " + text.error().message);

  std::string yaml;
  std::vector<Diagnostic> errors;
  if (from == "hf") {
    yaml = hf::importConfig(path, *text, errors);
  } else {
    megatron::Imported imported =
        megatron::importArguments(path, *text, accelerator);
    yaml = std::move(imported.yaml);
    errors = std::move(imported.errors);
  }
  if (!errors.empty())
    return fail(ExitCode::BadSpec, joinDiagnostics(errors));
  if (output.empty())
    std::fputs(yaml.c_str(), stdout);
  else if (Status status = systemFiles().write(output, yaml); !status)
    return fail(status.error().code,
                "reckon import: error: " + status.error().message);
  return static_cast<int>(ExitCode::Done);
}
