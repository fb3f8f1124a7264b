//===- Space.h - every combination that a spec leaves open ----------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_SPACE_H
#define RECKON_PASSES_SEARCH_SPACE_H

#include "passes/model/Choice.h"
#include "passes/model/Dims.h"

#include <functional>
#include <string>
#include <vector>

namespace reckon::search {

struct SpaceVisitor {
  /// A combination that divides.
  std::function<void(const model::Choice &)> choice;
  /// `count` combinations that do not, for one reason.
  std::function<void(int64_t count, const std::string &reason)> rejected;
};

/// Calls the visitor for every combination, in a fixed order.
void enumerate(const Spec &spec, const SpaceVisitor &visitor);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_SPACE_H
