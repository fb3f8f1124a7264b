//===- PlanIO.h - reading and writing plan directories --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Writing is deterministic: the same plan gives the same bytes. Reading trusts
// nothing: digest against the manifest, FlatBuffers verifier, then every index
// and every byte range, so that the interpreter needs no checks of its own.
//
// Errors: Environment for a file that is missing or cannot be read,
// Incompatible for another version of the format, Corrupt for damage.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_PLAN_PLANIO_H
#define RECKON_RUNTIME_PLAN_PLANIO_H

#include "runtime/base/Os.h"
#include "runtime/base/Status.h"
#include "runtime/plan/Manifest.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::plan {

/// XXH3-128 as 32 lower-case hex digits.
std::string digestHex(std::string_view bytes);

/// The bytes of one stage's file. Sets nothing: `version` must be kPlanFormat.
std::string writeStagePlan(const StagePlanT &plan);

/// Parses and validates one stage's file; `file` is used in errors.
Result<std::unique_ptr<StagePlanT>> readStagePlan(std::string_view bytes,
                                                  const std::string &file);

/// Checks what FlatBuffers cannot know: indices, shapes, byte ranges (on every
/// rank of the stage), events, streams. Corrupt, with the place in the plan.
Status validateStagePlan(const StagePlanT &plan, const std::string &file);

/// Writes the stage files, fills the manifest's digests, then writes
/// manifest.json last, so that an interrupted write leaves no valid plan.
Result<Manifest>
writePlanDirectory(FileSystem &files, const std::string &directory,
                   Manifest manifest,
                   const std::vector<const StagePlanT *> &stages);

/// manifest.json of a plan directory.
Result<Manifest> readPlanManifest(FileSystem &files,
                                  const std::string &directory);

/// One stage of a plan directory, checked against its manifest's digest.
Result<std::unique_ptr<StagePlanT>> readPlanStage(FileSystem &files,
                                                  const std::string &directory,
                                                  const Manifest &manifest,
                                                  unsigned stage);

} // namespace reckon::plan

#endif // RECKON_RUNTIME_PLAN_PLANIO_H
