//===- Export.h - a plan as the configuration of another framework --------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Each target writes the files that its framework reads, for one named version
// of it (docs/export.md). What the target cannot say is an error where it would
// change the choice or the computation, and else a line of `notExpressed`.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_EXPORT_EXPORT_H
#define RECKON_FRONTENDS_EXPORT_EXPORT_H

#include "passes/model/Job.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::exports {

enum class Target { Megatron, DeepSpeed, TorchTitan };

/// megatron, deepspeed, torchtitan.
const char *toString(Target target);
std::optional<Target> parseTarget(std::string_view word);
/// Whose memory, traffic and limits a target has.
Representation representationOf(Target target);
/// The version that the files are for, as people name it.
std::string targetVersion(Target target);

/// A spec and the choice to write. The choice decides wherever both speak.
struct ExportInput {
  const Spec &spec;
  const model::Choice &choice;

  /// With the target's representation.
  model::Job job(Target target) const;
  int64_t world() const { return choice.world(); }
};

struct ExportFile {
  std::string name; ///< without a folder
  std::string text;
};

struct Exported {
  /// The first one is what the framework reads.
  std::vector<ExportFile> files;
  /// `key: why`, in the order of docs/spec.md.
  std::vector<std::string> notExpressed;
  /// When there are any, `files` must not be used.
  std::vector<Diagnostic> errors;

  void refuse(const SourceLoc &loc, std::string message) {
    errors.push_back(errorAt(loc, std::move(message)));
  }
  void omit(std::string_view key, std::string_view why) {
    notExpressed.push_back(std::string(key) + ": " + std::string(why));
  }
};

/// Takes from the keys that are `auto` the values that the target's version
/// lacks, and sets the representation, so that the search knows the target.
void narrowToTarget(Target target, Spec &spec);

Exported exportTo(Target target, const ExportInput &input);

// One file each.
Exported exportMegatron(const ExportInput &input);
Exported exportDeepSpeed(const ExportInput &input);
Exported exportTorchTitan(const ExportInput &input);

/// Resident bytes of the fullest rank and traffic of a step, as the target has
/// them and as Reckon would, side by side.
std::string accountingText(Target target, const ExportInput &input);

} // namespace reckon::exports

#endif // RECKON_FRONTENDS_EXPORT_EXPORT_H
