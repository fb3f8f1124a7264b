//===- JsonNode.h - JSON text as a tree with places -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_JSONNODE_H
#define RECKON_FRONTENDS_SPEC_JSONNODE_H

#include "frontends/spec/Node.h"

#include <optional>

namespace reckon {

/// The value of a JSON text, every part with its line and column in `file`.
/// Strings become quoted scalars, numbers and true/false plain ones. Nothing
/// after an error, which names its place; a key that stands twice is one.
std::optional<Node> parseJson(const std::string &file, std::string_view text,
                              std::vector<Diagnostic> &errors);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_JSONNODE_H
