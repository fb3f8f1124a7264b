//===- ParallelKeys.h - the keys of `parallelism` by their limit ----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Explanations try other values of keys without knowing which key it is; here
// values are their YAML text.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_PARALLELKEYS_H
#define RECKON_PASSES_SEARCH_PARALLELKEYS_H

#include "passes/search/Limits.h"

namespace reckon::search {

/// Whether the limit is a key of `parallelism` with values to choose from.
bool isParallelKey(Limit limit);

/// Values that may be worth a try, in an order in which neighbours differ
/// least: rising degrees, more recomputation. `auto` for the layout.
std::vector<std::string> keyDomain(const Spec &spec, Limit limit);

/// Values that the spec allows; empty when it leaves the key open.
std::vector<std::string> keyValues(const Spec &spec, Limit limit);

/// Fixes the key to one value, or opens it with `auto`.
void setKey(Spec &spec, Limit limit, const std::string &value);

/// What a choice takes for the key.
std::string keyValue(const model::Choice &choice, Limit limit);

/// Where the spec says what the limit is: its key, or the section around it.
SourceLoc limitLoc(const Spec &spec, Limit limit);

/// Whether the user wrote the limit, rather than taking a default.
bool limitGiven(const Spec &spec, Limit limit);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_PARALLELKEYS_H
