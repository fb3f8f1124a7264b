//===- Share.h - which part of the model a stage has ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_SHARE_H
#define RECKON_PASSES_PROVE_SHARE_H

#include "passes/prove/Llama.h"
#include "passes/prove/Program.h"

namespace reckon::prove {

/// By the names of its parameters. Refuses parameters of no model, layers out
/// of order and a layer without all its parameters.
Status readShare(const Stage &stage, const Intent &intent, StageShare &share);

/// Whether the optimizer states of a stage are flat shards.
bool hasFlatStates(const Stage &stage);

/// The state of a role that a stage has once, or null.
const plan::StateT *findState(const Stage &stage, plan::Role role);

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_SHARE_H
