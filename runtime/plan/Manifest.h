//===- Manifest.h - what a plan directory says about itself ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_PLAN_MANIFEST_H
#define RECKON_RUNTIME_PLAN_MANIFEST_H

#include "runtime/base/Status.h"
#include "runtime/plan/Coordinates.h"
#include "runtime/plan/Prediction.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace reckon::plan {

/// Version of the stage files that this program reads and writes.
inline constexpr unsigned kPlanFormat = 1;

/// Schema of manifest.json.
inline constexpr const char *kManifestSchema = "reckon.plan-dir/1";

/// One stage's file, relative to the plan directory.
struct StageFile {
  std::string file;   ///< "stage-000.rkplan"
  std::string digest; ///< XXH3-128 of its bytes, 32 hex digits
};

/// The machines that the plan was made for; zeros when nothing says.
struct PlannedCluster {
  std::string accelerator; ///< "cpu", "h100-sxm", ...
  uint32_t nodes = 0;
  uint32_t gpusPerNode = 0; ///< ranks on each node
};

/// manifest.json.
struct Manifest {
  std::string name;
  std::string digest; ///< of all stages' digests in order: names the plan
  std::vector<StageFile> stages;
  MeshT mesh;
  std::string spec;          ///< canonical text of the merged spec
  nlohmann::json choice;     ///< the candidate that was compiled, and why
  std::string reckonVersion; ///< of the compiler
  unsigned planFormat = kPlanFormat;
  PlannedCluster cluster;
  Prediction prediction;
};

/// "stage-003.rkplan".
std::string stageFileName(unsigned stage);

/// Digest of the stages' digests, which names the plan as a whole.
std::string planDigest(const std::vector<StageFile> &stages);

/// The bytes of manifest.json: sorted keys, two spaces, a final newline.
std::string writeManifest(const Manifest &manifest);

/// Errors name `file`: Corrupt for damage, Incompatible for another version of
/// the schema or of the stage files.
Result<Manifest> readManifest(std::string_view bytes, const std::string &file);

} // namespace reckon::plan

#endif // RECKON_RUNTIME_PLAN_MANIFEST_H
