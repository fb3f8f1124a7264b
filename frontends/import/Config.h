//===- Config.h - what the plan file records of the spec ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_CONFIG_H
#define RECKON_FRONTENDS_IMPORT_CONFIG_H

#include "frontends/import/BuildTrain.h"

#include "mlir/IR/Builders.h"

namespace reckon {

/// The name of a YAML file without its folder: nothing in a plan names the
/// folder that it was made in.
std::string fileName(const SourceLoc &at);

/// The `config` dictionary of `train.program`: mesh, schedule, origins of the
/// degrees, optimizer, learning rate, data. Passes carry it down to the plan.
mlir::DictionaryAttr planConfig(mlir::Builder &b, const Spec &spec,
                                const model::Choice &choice,
                                const PlanFacts &facts);

} // namespace reckon

#endif // RECKON_FRONTENDS_IMPORT_CONFIG_H
