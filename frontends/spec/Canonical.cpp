//===- Canonical.cpp - the merged spec as text ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"

#include <algorithm>

namespace reckon {
namespace {

/// Whether a text reads back as the same plain scalar in any context.
bool isPlain(const std::string &text) {
  if (text.empty())
    return false;
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
  };
  bool sign = text[0] == '-' || text[0] == '+';
  if (!letter(text[0]) && !(sign && text.size() > 1 && letter(text[1])))
    return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || c == '-' || c == '+'; });
}

std::string scalar(const Node &node) {
  if (!node.quoted && isPlain(node.text))
    return node.text;
  std::string out = "\"";
  for (char c : node.text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + "\"";
}

std::string flow(const Node &node) {
  std::string out;
  switch (node.kind) {
  case Node::Kind::Null:
    return "null";
  case Node::Kind::Scalar:
    return scalar(node);
  case Node::Kind::List:
    for (const Node &item : node.items)
      out += (out.empty() ? "" : ", ") + flow(item);
    return "[" + out + "]";
  case Node::Kind::Map:
    for (const Entry &entry : node.entries)
      out += (out.empty() ? "" : ", ") + entry.key + ": " + flow(entry.value);
    return "{" + out + "}";
  }
  return out;
}

void block(const Node &map, const std::string &section, size_t indent,
           std::string &out) {
  for (const KeyRow *row : keysBelow(section)) {
    const Entry *entry = map.find(row->name());
    if (!entry || entry->value.isNull())
      continue;
    std::string path(row->path);
    std::string lead = std::string(indent, ' ') + entry->key + ":";
    if (entry->value.isMap() && !keysBelow(path).empty()) {
      std::string inner;
      block(entry->value, path, indent + 2, inner);
      if (!inner.empty())
        out += lead + "\n" + inner;
    } else {
      out += lead + " " + flow(entry->value) + "\n";
    }
  }
}

} // namespace

std::string canonicalYaml(const Node &root) {
  std::string out;
  block(root, "", 0, out);
  return out;
}

} // namespace reckon
