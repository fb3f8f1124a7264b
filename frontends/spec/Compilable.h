//===- Compilable.h - what reckon compile can lower -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The planner accounts for every spec that reads; the compiler lowers a part
// of them. Here is the part, key by key; passes/model/Job.h says the same of a
// choice.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_SPEC_COMPILABLE_H
#define RECKON_FRONTENDS_SPEC_COMPILABLE_H

#include "frontends/spec/Spec.h"

namespace reckon {

/// What keeps a spec from being compiled: an error at each key whose value (or
/// each of whose listed values) cannot be lowered, with what to write instead.
/// Empty when it can be compiled.
std::vector<Diagnostic> notCompilable(const Spec &spec);

/// Sets search.space to compilable and narrows what is open to values that can
/// be lowered. A value that drops out of a list is a warning in the spec;
/// choices with no such value stay as they are.
void restrictToCompilable(Spec &spec);

} // namespace reckon

#endif // RECKON_FRONTENDS_SPEC_COMPILABLE_H
