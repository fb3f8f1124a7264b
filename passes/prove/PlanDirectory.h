//===- PlanDirectory.h - proofs of a plan directory -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_PLANDIRECTORY_H
#define RECKON_PASSES_PROVE_PLANDIRECTORY_H

#include "frontends/spec/Spec.h"
#include "passes/prove/Prove.h"
#include "runtime/plan/Manifest.h"

#include <memory>
#include <string>
#include <vector>

namespace reckon::prove {

/// A plan directory as it was read: whole, undamaged, and with the spec that
/// its manifest records.
struct PlanDirectory {
  plan::Manifest manifest;
  std::vector<std::unique_ptr<plan::StagePlanT>> stages;
  Intent intent;

  std::vector<const plan::StagePlanT *> pointers() const;
};

/// The spec that a plan was compiled from: the text in its manifest. What a
/// calibration file said is in manifest.prediction; the file is not read again.
/// Corrupt when the text is no spec; `directory` is used in errors.
Result<Spec> recordedSpec(const plan::Manifest &manifest,
                          const std::string &directory);

/// Reads and checks every file. Errors as in runtime/plan/PlanIO.h; Corrupt
/// when the recorded spec is none.
Result<PlanDirectory> readPlanDirectory(FileSystem &files,
                                        const std::string &directory);

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_PLANDIRECTORY_H
