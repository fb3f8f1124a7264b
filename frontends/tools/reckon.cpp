//===- reckon.cpp - the command line front door ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Commands.h"

#include "runtime/base/Status.h"

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

using namespace reckon;

namespace {

int fail(ExitCode code, const std::string &message) {
  std::fprintf(stderr, "reckon: error: %s\n", message.c_str());
  return static_cast<int>(code);
}

/// The compiler half brings MLIR into the process, so it is loaded only here.
int compileMain(int argc, char **argv) {
  void *library = dlopen(kCompilerLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return fail(ExitCode::Environment,
                std::string("cannot load the compiler: ") + dlerror() +
                    "; build with -DRECKON_COMPILER=ON (needs MLIR 22)");
  auto compile = reinterpret_cast<CompileMain>(dlsym(library, kCompileSymbol));
  if (!compile)
    return fail(ExitCode::Internal,
                std::string("the compiler library has no ") + kCompileSymbol +
                    ": " + dlerror());
  return compile(argc, argv);
}

/// Becomes another program of the same folder.
int become(const char *name, int argc, char **argv) {
  std::error_code error;
  std::filesystem::path self =
      std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (self.parent_path() / name).string();
  std::vector<char *> arguments(argv, argv + argc);
  arguments[0] = program.data();
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  return fail(ExitCode::Environment, "cannot start " + program + ": " +
                                         std::strerror(errno) +
                                         "; build the target " + name);
}

/// The thin runtime on its own.
int runMain(int argc, char **argv) { return become("reckon-run", argc, argv); }

/// On its own because it brings the kernels' library.
int calibrateMain(int argc, char **argv) {
  return become("reckon-calibrate", argc, argv);
}

struct Command {
  const char *name;
  int (*main)(int, char **);
  const char *summary;
};

constexpr Command kCommands[] = {
    {"plan", planMain, "choose how a job is spread, and explain; runs nothing"},
    {"compile", compileMain, "lower a spec to a plan directory"},
    {"show", showMain, "read a plan directory back"},
    {"verify", verifyMain, "prove a plan directory again from its files"},
    {"goodput", goodputMain, "what failures and checkpoints cost"},
    {"run", runMain, "run a plan; the same as reckon-run"},
    {"calibrate", calibrateMain, "measure this machine for the time model"},
    {"export", exportMain, "the choice as another framework's configuration"},
    {"import", importMain, "a spec from another framework's configuration"},
    {"schema", schemaMain, "the JSON Schema of a spec, for editors"},
    {"doctor", doctorMain, "what this machine has"},
};

} // namespace

int main(int argc, char **argv) {
  for (const Command &command : kCommands) {
    if (argc < 2 || std::strcmp(argv[1], command.name) != 0)
      continue;
    std::string name = std::string("reckon ") + command.name;
    std::vector<char *> arguments(argv + 1, argv + argc);
    arguments[0] = name.data();
    arguments.push_back(nullptr);
    return command.main(argc - 1, arguments.data());
  }
  if (argc >= 2 && argv[1][0] != '-')
    return fail(ExitCode::BadSpec,
                std::string("expected a command (plan, compile, show, verify, "
                            "goodput, export, import, run, calibrate, "
                            "schema or doctor), got ") +
                    argv[1] + "; reckon --help explains them");
  // Only help, the version and mistakes are left.
  CLI::App app{"Reckon: a config compiler and launcher for training"};
  app.name("reckon");
  app.set_version_flag("--version", "reckon " RECKON_VERSION);
  for (const Command &command : kCommands)
    app.add_subcommand(command.name, command.summary);
  app.require_subcommand(1);
  return parseArguments(app, argc, argv);
}
