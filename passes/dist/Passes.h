//===- Passes.h - sharding, propagation, partitioning ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_DIST_PASSES_H
#define RECKON_PASSES_DIST_PASSES_H

#include "dialect/Dist/Dist.h"
#include "dialect/Dist/Sharding.h"
#include "dialect/Train/Train.h"

#include "mlir/Pass/Pass.h"

namespace reckon::dist {

#define GEN_PASS_DECL
#include "passes/dist/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/dist/Passes.h.inc"

/// The mesh of a program; null before dist-apply-spec.
MeshOp meshOf(train::ProgramOp program);

/// The sharding that dist-apply-spec gave a state.
Sharding shardingOf(train::StateOp state);

/// On a linear of an fp8 program between dist-partition and dist-quantize: for
/// each operand, the axes over which its largest magnitude is still to be
/// found.
inline constexpr llvm::StringLiteral operandAxesAttrName = "operand_axes";

/// All axes of the mesh with more than one rank, in mesh order.
Axes wideAxes(MeshOp mesh);

} // namespace reckon::dist

#endif // RECKON_PASSES_DIST_PASSES_H
