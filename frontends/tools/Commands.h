//===- Commands.h - the subcommands of the reckon program -----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each command parses its own arguments: argv[0] is `reckon COMMAND`, the rest
// what the user wrote behind it. The result is the exit code.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_COMMANDS_H
#define RECKON_FRONTENDS_TOOLS_COMMANDS_H

namespace CLI {
class App;
} // namespace CLI

namespace reckon {

int planMain(int argc, char **argv);
int doctorMain(int argc, char **argv);
int goodputMain(int argc, char **argv);
int showMain(int argc, char **argv);
int verifyMain(int argc, char **argv);
int exportMain(int argc, char **argv);
int importMain(int argc, char **argv);
int schemaMain(int argc, char **argv);

/// Exported under kCompileSymbol by the compiler library, which only
/// `reckon compile` loads: the other commands start without MLIR.
using CompileMain = int (*)(int argc, char **argv);
inline constexpr const char *kCompileSymbol = "reckonCompileMain";
inline constexpr const char *kCompilerLibrary = "libreckon_compiler.so";

/// CLI11's parse with the contract's exit codes: -1 to go on, 0 after printing
/// help, 2 after a usage error.
int parseArguments(CLI::App &app, int argc, char **argv);

} // namespace reckon

#endif // RECKON_FRONTENDS_TOOLS_COMMANDS_H
