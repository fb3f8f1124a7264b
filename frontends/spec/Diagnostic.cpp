//===- Diagnostic.cpp -----------------------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Diagnostic.h"

#include <utility>

namespace reckon {

std::string SourceLoc::str() const {
  if (line == 0)
    return file;
  return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

std::string SourceLoc::shortStr() const {
  SourceLoc brief = *this;
  // What follows --set is a value, not a path.
  if (file.compare(0, 2, "--") != 0)
    if (size_t slash = file.rfind('/'); slash != std::string::npos)
      brief.file = file.substr(slash + 1);
  return brief.str();
}

std::string Diagnostic::str() const {
  return loc.str() +
         (severity == Severity::Error ? ": error: " : ": warning: ") + message;
}

Diagnostic errorAt(SourceLoc loc, std::string message) {
  return {Severity::Error, std::move(loc), std::move(message)};
}

Diagnostic warningAt(SourceLoc loc, std::string message) {
  return {Severity::Warning, std::move(loc), std::move(message)};
}

std::string joinDiagnostics(const std::vector<Diagnostic> &diagnostics) {
  std::string text;
  for (const Diagnostic &diagnostic : diagnostics) {
    if (!text.empty())
      text += '\n';
    text += diagnostic.str();
  }
  return text;
}

} // namespace reckon
