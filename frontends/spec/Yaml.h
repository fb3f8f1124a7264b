//===- Yaml.h - bytes to a tree of nodes ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The only door to yaml-cpp. Whatever the bytes are, parsing ends with a tree
// or with located errors, in memory and time that the limits below bound.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_YAML_H
#define RECKON_FRONTENDS_SPEC_YAML_H

#include "frontends/spec/Node.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// What a spec may hold. Real ones stay below a hundredth of this.
struct YamlLimits {
  size_t bytes = 1 << 20;
  size_t depth = 32;
  size_t nodes = 50000; ///< after aliases are replaced by what they stand for
};

/// Reads one document. `file` is the name for places. Nothing comes back when
/// the text as a whole is not YAML; a key that stands twice in a map is an
/// error too, but the first one stays and the tree comes back, so that the
/// other errors can be reported as well.
std::optional<Node> parseYaml(const std::string &file, std::string_view text,
                              std::vector<Diagnostic> &errors,
                              const YamlLimits &limits = {});

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_YAML_H
