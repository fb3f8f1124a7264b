//===- Import.h - Megatron arguments as a spec ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_MEGATRON_IMPORT_H
#define RECKON_FRONTENDS_IMPORT_MEGATRON_IMPORT_H

#include "frontends/spec/Diagnostic.h"

#include <string>
#include <string_view>
#include <vector>

namespace reckon::megatron {

struct Imported {
  std::string yaml; ///< canonical, behind a comment with the notes
  /// What the spec cannot say but that does not keep it from being planned,
  /// and flags without a bearing on a plan.
  std::vector<std::string> notes;
  std::vector<Diagnostic> errors; ///< when there are any, `yaml` is empty
};

/// `accelerator` is a catalogue name for cluster.accelerator, which no argument
/// tells, or empty.
Imported importArguments(const std::string &file, std::string_view text,
                         const std::string &accelerator);

} // namespace reckon::megatron

#endif // RECKON_FRONTENDS_IMPORT_MEGATRON_IMPORT_H
