//===- BuildTrain.h - from the spec to the train dialect ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_FRONTENDS_IMPORT_BUILDTRAIN_H
#define RECKON_FRONTENDS_IMPORT_BUILDTRAIN_H

#include "frontends/spec/Spec.h"
#include "passes/model/Choice.h"

namespace mlir {
class MLIRContext;
class ModuleOp;
template <typename OpTy> class OwningOpRef;
} // namespace mlir

namespace reckon {

/// Numbers that the plan file records and that the model library computes.
struct PlanFacts {
  double modelFlopsPerToken = 0; ///< forward and backward
  double peakFlops = 0;          ///< of one accelerator in the precision
};

/// The forward of the model as a module with one `train.program`, on global
/// shapes. Every operation has a NameLoc ("layers.3.q") around the place of the
/// YAML key that shapes it.
mlir::OwningOpRef<mlir::ModuleOp> buildTrain(mlir::MLIRContext &context,
                                             const Spec &spec,
                                             const model::Choice &choice,
                                             const PlanFacts &facts);

} // namespace reckon

#endif // RECKON_FRONTENDS_IMPORT_BUILDTRAIN_H
