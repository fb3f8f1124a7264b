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
#include "frontends/spec/Load.h"
#include "frontends/tools/Commands.h"
#include "passes/prove/Prove.h"
#include "runtime/plan/PlanIO.h"

#include <CLI/CLI.hpp>

using namespace reckon;

namespace {

int fail(const Error &error) {
  std::fprintf(stderr, "reckon verify: error: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

/// The spec that a plan was compiled from: the canonical text in its manifest.
Result<Spec> specOf(const plan::Manifest &manifest,
                    const std::string &directory) {
  std::string path = directory + "/manifest.json";
  FakeFileSystem files;
  files.files[path] = manifest.spec;
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({path}, {}, errors, files);
  if (!spec)
    return makeError(ExitCode::Corrupt, path + ": its spec cannot be read (" +
                                            spec.error().message +
                                            "): compile the plan again");
  return spec;
}

Status verify(const std::string &directory) {
  double start = systemClock().seconds();
  auto manifest = plan::readPlanManifest(systemFiles(), directory);
  if (!manifest)
    return manifest.error();
  auto spec = specOf(*manifest, directory);
  if (!spec)
    return spec.error();
  std::vector<std::unique_ptr<plan::StagePlanT>> stages;
  std::vector<const plan::StagePlanT *> pointers;
  for (unsigned i = 0; i < manifest->stages.size(); ++i) {
    auto stage = plan::readPlanStage(systemFiles(), directory, *manifest, i);
    if (!stage)
      return stage.error();
    stages.push_back(std::move(*stage));
    pointers.push_back(stages.back().get());
  }
  double read = systemClock().seconds() - start;
  auto proof = prove::provePlan(pointers, prove::intentOf(*spec));
  if (!proof)
    return makeError(proof.error().code,
                     directory + ": " + proof.error().message);
  std::printf("%s: proved for all %lld ranks of %zu stages, from %zu files\n",
              directory.c_str(),
              static_cast<long long>(plan::worldSize(manifest->mesh)),
              stages.size(), stages.size() + 1);
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
