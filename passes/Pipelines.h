//===- Pipelines.h - the named phases of the compiler ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PIPELINES_H
#define RECKON_PASSES_PIPELINES_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace reckon {

/// The four dialects of Reckon and the builtin ones they need.
void registerReckonDialects(mlir::DialectRegistry &registry);

/// Every pass and every phase pipeline, for reckon-opt.
void registerReckonPasses();

} // namespace reckon

#endif // RECKON_PASSES_PIPELINES_H
