//===- Load.h - YAML files to a checked Spec ------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_LOAD_H
#define RECKON_FRONTENDS_SPEC_LOAD_H

#include "frontends/spec/Spec.h"
#include "runtime/base/Os.h"

#include <string>
#include <vector>

namespace reckon {

/// Reads the files, merges them left to right (maps key by key, a later scalar
/// or list replaces an earlier one), applies `sets` ("a.b=value", the value in
/// YAML) and checks the result.
///
/// All findings go to `errors`: by file, then by line, the command line last.
/// The returned Error then has them all as its message, one a line, and
/// ExitCode::Environment when a file could not be read, else
/// ExitCode::BadSpec. Warnings are in the Spec.
Result<Spec> loadSpec(const std::vector<std::string> &files,
                      const std::vector<std::string> &sets,
                      std::vector<Diagnostic> &errors,
                      FileSystem &fileSystem = systemFiles());

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_LOAD_H
