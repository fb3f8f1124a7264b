//===- Diagnostic.h - places in a spec and what is wrong there ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_DIAGNOSTIC_H
#define RECKON_FRONTENDS_SPEC_DIAGNOSTIC_H

#include <string>
#include <vector>

namespace reckon {

/// A place in a spec. `file` is the path as the user wrote it, or
/// `--set key=value` for a value from the command line. Line and column count
/// from 1; line 0 means the file as a whole.
struct SourceLoc {
  std::string file;
  unsigned line = 0;
  unsigned column = 0;

  /// `file:line:column`, or only the file when there is no line.
  std::string str() const;
  /// As str(), without the folders of the file: for what must not name the
  /// machine, such as locations inside a plan.
  std::string shortStr() const;
  bool operator==(const SourceLoc &) const = default;
};

enum class Severity { Error, Warning };

/// One finding: a sentence in lower case that says what was expected, what was
/// found and what to do.
struct Diagnostic {
  Severity severity = Severity::Error;
  SourceLoc loc;
  std::string message;

  /// `file:line:column: error: sentence`.
  std::string str() const;
};

Diagnostic errorAt(SourceLoc loc, std::string message);
Diagnostic warningAt(SourceLoc loc, std::string message);

/// One line each, in the given order.
std::string joinDiagnostics(const std::vector<Diagnostic> &diagnostics);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_DIAGNOSTIC_H
