//===- Words.h - the words of an argument file or launch script -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Enough of a shell to read how people keep Megatron arguments: comments,
// quotes, continued lines, variables and arrays set in the same file, and
// defaults such as ${N:-8}. Nothing is run; what only a run would tell
// ($1, $(...), variables of the environment) stays unknown.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_MEGATRON_WORDS_H
#define RECKON_FRONTENDS_IMPORT_MEGATRON_WORDS_H

#include "frontends/spec/Diagnostic.h"

#include <string>
#include <string_view>
#include <vector>

namespace reckon::megatron {

struct Word {
  std::string text;
  SourceLoc loc;
  /// What could not be known without running, such as "$1"; else empty.
  std::string unknown;
};

/// The words of one command, assignments resolved and left out.
using Command = std::vector<Word>;

std::vector<Command> readCommands(const std::string &file,
                                  std::string_view text,
                                  std::vector<Diagnostic> &errors);

} // namespace reckon::megatron

#endif // RECKON_FRONTENDS_IMPORT_MEGATRON_WORDS_H
