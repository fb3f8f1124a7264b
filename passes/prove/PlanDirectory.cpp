//===- PlanDirectory.cpp - proofs of a plan directory ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/PlanDirectory.h"

#include "frontends/spec/Load.h"
#include "runtime/plan/PlanIO.h"

using namespace reckon;
using namespace reckon::prove;

std::vector<const plan::StagePlanT *> PlanDirectory::pointers() const {
  std::vector<const plan::StagePlanT *> list;
  for (const auto &stage : stages)
    list.push_back(stage.get());
  return list;
}

Result<Spec> prove::recordedSpec(const plan::Manifest &manifest,
                                 const std::string &directory) {
  std::string path = directory + "/manifest.json";
  FakeFileSystem files;
  files.files[path] = manifest.spec;
  std::vector<Diagnostic> errors;
  // Its calibration file is on another machine, if anywhere.
  Result<Spec> spec =
      loadSpec({path}, {"cluster.calibration=none"}, errors, files);
  if (spec)
    return spec;
  return makeError(ExitCode::Corrupt, path + ": its spec cannot be read (" +
                                          spec.error().message +
                                          "): compile the plan again");
}

Result<PlanDirectory> prove::readPlanDirectory(FileSystem &files,
                                               const std::string &directory) {
  auto manifest = plan::readPlanManifest(files, directory);
  if (!manifest)
    return manifest.error();
  auto spec = recordedSpec(*manifest, directory);
  if (!spec)
    return spec.error();
  PlanDirectory result;
  result.intent = intentOf(*spec);
  for (unsigned i = 0; i < manifest->stages.size(); ++i) {
    auto stage = plan::readPlanStage(files, directory, *manifest, i);
    if (!stage)
      return stage.error();
    result.stages.push_back(std::move(*stage));
  }
  result.manifest = std::move(*manifest);
  return result;
}
