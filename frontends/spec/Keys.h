//===- Keys.h - the table of keys -----------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// One row a key: type, range, default, known words, what can be compiled,
// meaning. Readers, messages, suggestions, docs/spec.md and the JSON Schema all
// come from the same rows.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_KEYS_H
#define RECKON_FRONTENDS_SPEC_KEYS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

enum class KeyKind {
  Section,  ///< a map with keys of its own
  Integer,  ///< a whole number within [low, high]
  Real,     ///< a number within [low, high]
  Switch,   ///< true or false
  Word,     ///< one of `words`
  Text,     ///< any text
  Texts,    ///< one text or a list of them
  Degrees,  ///< auto, a whole number, or a list of them
  Switches, ///< auto, true or false, or a list of them
  Words,    ///< auto, one of `words`, or a list of them
  Special,  ///< read by code of its own; `type` says what it takes
};

struct KeyRow {
  std::string_view path; ///< dotted, such as model.hidden_size
  KeyKind kind = KeyKind::Section;
  /// The default as YAML text; "required"; or, in parentheses, how it is
  /// derived. Empty: nothing.
  std::string_view fallback;
  double low = 0;
  double high = 0;
  std::string_view words; ///< all known ones, separated by |
  /// The values that `reckon compile` can lower; empty means all.
  std::string_view compiles;
  std::string_view doc;
  std::string_view type;    ///< only Special: what it takes, for people
  std::string_view applies; ///< architectures with this key; empty means all

  std::string_view name() const;   ///< the last part of the path
  std::string_view parent() const; ///< the path before it, or empty
  bool required() const { return fallback == "required"; }
  /// What a value must be: "a whole number from 1 to 65536".
  std::string expected() const;
};

/// All rows, in the order of docs/spec.md: a section before its keys.
const std::vector<KeyRow> &keyTable();

/// The row of a dotted path, or null.
const KeyRow *findKey(std::string_view path);

/// The rows directly below a section ("" for the top), in order.
std::vector<const KeyRow *> keysBelow(std::string_view section);

/// The path that somebody who wrote `key` under `section` probably meant, also
/// by the names that other frameworks use; empty when nothing is near.
std::string nearestKey(std::string_view section, std::string_view key);

/// The reference tables of docs/spec.md, in Markdown.
std::string keyTableMarkdown();

/// "a|b|c" as its parts.
std::vector<std::string> splitWords(std::string_view words);

/// A number as people write it: 3, 0.5, 1e-08.
std::string formatNumber(double value);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_KEYS_H
