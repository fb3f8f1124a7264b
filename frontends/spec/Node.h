//===- Node.h - a YAML document as a tree with places ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_NODE_H
#define RECKON_FRONTENDS_SPEC_NODE_H

#include "frontends/spec/Diagnostic.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct Entry;

/// One value of a document. Every value has the place where it begins, so that
/// a message can point at it long after files were merged.
struct Node {
  enum class Kind { Null, Scalar, List, Map };

  Kind kind = Kind::Null;
  SourceLoc loc;
  std::string text;           ///< of a scalar
  bool quoted = false;        ///< a quoted scalar is text, never a number
  std::vector<Node> items;    ///< of a list
  std::vector<Entry> entries; ///< of a map, keys unique, in the written order

  bool isNull() const { return kind == Kind::Null; }
  bool isScalar() const { return kind == Kind::Scalar; }
  bool isList() const { return kind == Kind::List; }
  bool isMap() const { return kind == Kind::Map; }
  /// The entry of a map, or null.
  const Entry *find(std::string_view key) const;
  Entry *find(std::string_view key);
  /// What a message says was found: `the text "four"`, `a list`, `nothing`.
  std::string describe() const;
};

/// A key of a map with its value.
struct Entry {
  std::string key;
  SourceLoc loc; ///< of the key
  Node value;
};

/// Lays `over` over `under`: maps merge key by key, anything else replaces.
void mergeInto(Node &under, Node over);

/// `text` in double quotes, shortened when long, with control characters
/// escaped: for messages.
std::string quoteForMessage(std::string_view text);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_NODE_H
