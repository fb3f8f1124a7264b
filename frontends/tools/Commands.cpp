//===- Commands.cpp - command lines with the contract's exit codes --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Commands.h"

#include "runtime/base/Status.h"

#include <CLI/CLI.hpp>

int reckon::parseArguments(CLI::App &app, int argc, char **argv) {
  try {
    app.parse(argc, argv);
    return -1;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? static_cast<int>(ExitCode::Done)
                                : static_cast<int>(ExitCode::BadSpec);
  }
}
