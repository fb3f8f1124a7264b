//===- Schema.h - the spec as a JSON Schema -------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_SCHEMA_H
#define RECKON_FRONTENDS_SPEC_SCHEMA_H

#include <string>

namespace reckon {

/// A JSON Schema (draft 2020-12) of one YAML file of a spec, for editors, made
/// from the table of keys: types, ranges, words, defaults and meanings; every
/// other key is refused. No key is required, because files merge: what a spec
/// lacks in the end is for loadSpec() to say, as is all that keys ask of each
/// other. Ends with a newline.
std::string specSchema();

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_SCHEMA_H
