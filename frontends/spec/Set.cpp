//===- Set.cpp - values from the command line -----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/spec/Reader.h"
#include "frontends/spec/Yaml.h"

namespace reckon {
namespace {

/// Moves the places of a value that was parsed on its own to where it stands
/// in the argument.
void shift(Node &node, unsigned columns) {
  if (node.loc.line == 1)
    node.loc.column += columns;
  for (Node &item : node.items)
    shift(item, columns);
  for (Entry &entry : node.entries) {
    if (entry.loc.line == 1)
      entry.loc.column += columns;
    shift(entry.value, columns);
  }
}

} // namespace

std::optional<Node> parseSet(const std::string &argument,
                             std::vector<Diagnostic> &errors) {
  std::string file = "--set " + argument;
  auto fail = [&](unsigned column) {
    errors.push_back(errorAt(SourceLoc{file, 1, column},
                             "expected section.key=value, got " +
                                 quoteForMessage(argument) +
                                 "; write for example "
                                 "--set training.sequence_length=4096"));
    return std::nullopt;
  };
  size_t equals = argument.find('=');
  if (equals == std::string::npos || equals == 0)
    return fail(1);
  std::vector<Diagnostic> found;
  std::optional<Node> value =
      parseYaml(file, std::string_view(argument).substr(equals + 1), found);
  for (Diagnostic &diagnostic : found) {
    if (diagnostic.loc.line == 1)
      diagnostic.loc.column += static_cast<unsigned>(equals + 1);
    errors.push_back(std::move(diagnostic));
  }
  if (!value)
    return std::nullopt;
  shift(*value, static_cast<unsigned>(equals + 1));

  // Wrap the value from the last part of the key to the first.
  std::string key = argument.substr(0, equals);
  Node node = std::move(*value);
  while (true) {
    size_t dot = key.rfind('.');
    size_t begin = dot == std::string::npos ? 0 : dot + 1;
    std::string part = key.substr(begin);
    if (part.empty())
      return fail(static_cast<unsigned>(begin + 1));
    SourceLoc loc{file, 1, static_cast<unsigned>(begin + 1)};
    Node map;
    map.kind = Node::Kind::Map;
    map.loc = loc;
    map.entries.push_back({part, loc, std::move(node)});
    node = std::move(map);
    if (dot == std::string::npos)
      return node;
    key.resize(dot);
  }
}

} // namespace reckon
