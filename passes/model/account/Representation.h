//===- Representation.h - what a framework can do at all ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_REPRESENTATION_H
#define RECKON_PASSES_MODEL_ACCOUNT_REPRESENTATION_H

#include "passes/model/Choice.h"
#include "passes/model/ModelShape.h"

#include <string>

namespace reckon::model {

/// Why a job accounted for as `representation` cannot take this choice, in a
/// few words; empty when it can. Reckon's own limits are whyNotCompilable()'s.
std::string representationForbids(Representation representation,
                                  const Choice &choice,
                                  const ModelShape &model);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_REPRESENTATION_H
