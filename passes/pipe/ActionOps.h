//===- ActionOps.h - action lists between passes/model and the IR ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PIPE_ACTIONOPS_H
#define RECKON_PASSES_PIPE_ACTIONOPS_H

#include "passes/model/ActionList.h"
#include "passes/pipe/Passes.h"

namespace reckon::pipe {

/// Appends the list to the stage as `pipe.actions @step`.
ActionsOp createActions(StageOp stage, const model::StageActions &list);

/// The list that a stage's `pipe.actions` op stands for, with the streams that
/// passes/model gives to each kind of action and counts read off the slots.
model::StageActions readActions(StageOp stage);

} // namespace reckon::pipe

#endif // RECKON_PASSES_PIPE_ACTIONOPS_H
