//===- Pipelines.h - the named phases of the compiler ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PIPELINES_H
#define RECKON_PASSES_PIPELINES_H

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace mlir {
class DialectRegistry;
class ModuleOp;
class OpPassManager;
} // namespace mlir
namespace llvm {
class LogicalResult;
} // namespace llvm

namespace reckon {

/// The four dialects of Reckon.
void registerReckonDialects(mlir::DialectRegistry &registry);

/// Every pass, and every phase as a pipeline (`--reckon-sharded` runs that
/// phase alone on the output of the one before), for reckon-opt.
void registerReckonPasses();

/// What a compile can stop at, in order.
enum class Phase { Train, Sharded, Partitioned, Scheduled, Planned };

/// "train", "sharded", ...; the phases of `--compile-to`.
const char *phaseName(Phase phase);
std::optional<Phase> parsePhase(std::string_view name);

struct PhaseOptions {
  Phase last = Phase::Planned;
  std::string recompute = "none"; ///< none or full
  /// Leave out the passes that only remove what is implied.
  bool elide = true;
  /// The module is this snapshot read back: only what comes after it runs.
  std::string after;
  /// Called after each curated step with the snapshot's file name, such as
  /// "40-partitioned.mlir".
  std::function<void(const char *name, mlir::ModuleOp module)> snapshot;
};

/// Runs the phases up to `last` on an imported module. Diagnostics go to the
/// module's context.
llvm::LogicalResult runPhases(mlir::ModuleOp module,
                              const PhaseOptions &options);

} // namespace reckon

#endif // RECKON_PASSES_PIPELINES_H
