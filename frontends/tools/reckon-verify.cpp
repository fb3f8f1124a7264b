//===- reckon-verify.cpp - reckon verify ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Proves a plan directory again from its files alone: nothing of the compiler
// that wrote it is used but the proofs.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Commands.h"
#include "passes/prove/PlanDirectory.h"

#include <CLI/CLI.hpp>

using namespace reckon;

namespace {

int fail(const Error &error) {
  std::fprintf(stderr, "reckon verify: error: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

Status verify(const std::string &directory) {
  double start = systemClock().seconds();
  auto plan = prove::readPlanDirectory(systemFiles(), directory);
  if (!plan)
    return plan.error();
  double read = systemClock().seconds() - start;
  auto proof = prove::provePlan(plan->pointers(), plan->intent);
  if (!proof)
    return makeError(proof.error().code,
                     directory + ": " + proof.error().message);
  std::printf("%s: proved for all %lld ranks of %zu stages, from %zu files\n",
              directory.c_str(),
              static_cast<long long>(plan::worldSize(plan->manifest.mesh)),
              plan->stages.size(), plan->stages.size() + 1);
  std::printf("  %-34s %7.3f s\n", "files match their digests", read);
  for (const prove::Fact &fact : proof->facts)
    std::printf("  %-34s %7.3f s  %s\n", fact.name.c_str(), fact.seconds,
                fact.detail.c_str());
  std::printf("  %-34s %7.3f s\n", "in all", read + proof->seconds);
  return Status::success();
}

} // namespace

int reckon::verifyMain(int argc, char **argv) {
  std::string directory;
  CLI::App app("Proves a plan directory again from its files: no deadlock, no "
               "race, the model's mathematics. Exit code 41 with the place "
               "when a proof fails, 6 when a file is damaged.",
               "reckon verify");
  app.add_option("PLAN_DIR", directory, "plan directory")->required();
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;
  while (directory.size() > 1 && directory.back() == '/')
    directory.pop_back();
  if (Status status = verify(directory); !status)
    return fail(status.error());
  return 0;
}
