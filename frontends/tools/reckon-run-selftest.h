//===- reckon-run-selftest.h - reckon-run --selftest ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_TOOLS_RECKONRUNSELFTEST_H
#define RECKON_FRONTENDS_TOOLS_RECKONRUNSELFTEST_H

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace reckon {

/// The command line of the self-test, as it was written.
struct SelfTestArguments {
  std::string target; ///< empty: no self-test
  std::string out = "selftest.json";
  std::string sizes = "full";
  std::string plans;
  std::vector<std::string> sections;
  std::optional<uint64_t> seed;
};

void declareSelfTest(CLI::App &app, SelfTestArguments &arguments);

/// Runs it; the exit code of the program: 0 passed, 1 something is wrong, 5
/// there is no such device.
int runSelfTest(const SelfTestArguments &arguments);

} // namespace reckon

#endif // RECKON_FRONTENDS_TOOLS_RECKONRUNSELFTEST_H
