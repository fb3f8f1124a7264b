//===- Suggest.h - the nearest known word ---------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_SUGGEST_H
#define RECKON_FRONTENDS_SPEC_SUGGEST_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Insertions, deletions, replacements and swaps of neighbours that turn one
/// word into the other (optimal string alignment), upper and lower case alike.
size_t editDistance(std::string_view a, std::string_view b);

/// The word nearest to `word`, the first of equals; empty when none is near
/// enough to be meant (a third of the length, at least two edits).
std::string nearestWord(std::string_view word,
                        const std::vector<std::string> &words);

/// "a, b or c".
std::string listWords(const std::vector<std::string> &words);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_SUGGEST_H
