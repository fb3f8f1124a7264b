//===- reckon-schema.cpp - reckon schema ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Schema.h"
#include "frontends/tools/Commands.h"
#include "runtime/base/Os.h"

#include <CLI/CLI.hpp>

#include <cstdio>

using namespace reckon;

int reckon::schemaMain(int argc, char **argv) {
  CLI::App app{"Prints the JSON Schema of a spec, for editors: name it in the "
               "YAML file, # yaml-language-server: $schema=FILE."};
  app.name("reckon schema");
  std::string output;
  app.add_option("-o,--output", output, "write it to this file");
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  if (output.empty()) {
    std::fputs(specSchema().c_str(), stdout);
    return static_cast<int>(ExitCode::Done);
  }
  if (Status status = systemFiles().write(output, specSchema()); !status) {
    std::fprintf(stderr, "reckon schema: error: %s\n",
                 status.error().message.c_str());
    return static_cast<int>(status.error().code);
  }
  return static_cast<int>(ExitCode::Done);
}
