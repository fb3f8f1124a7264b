//===- Sharding.h - shardings as values -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_DIST_SHARDING_H
#define RECKON_DIALECT_DIST_SHARDING_H

#include "dialect/Dist/Dist.h"

#include <string>
#include <vector>

namespace reckon::dist {

using Axes = std::vector<std::string>;

/// A sharding that passes compute with; see `#dist.sharding`.
struct Sharding {
  std::vector<Axes> dims;
  Axes unreduced;
  std::string reduction = "sum";
  Axes flat;
  std::string origin;

  static Sharding replicated(int64_t rank) {
    Sharding sharding;
    sharding.dims.resize(rank);
    return sharding;
  }
  static Sharding of(ShardingAttr attr);
  ShardingAttr attr(mlir::MLIRContext *context) const;

  /// Same placement of the same data; origins do not count.
  bool operator==(const Sharding &other) const;
  /// As text for diagnostics: "[{dp}, {}] unreduced {tp}".
  std::string str() const;
};

/// The sharding of a value before partitioning: that of the operation which
/// defines it, or, for a block argument, of the operand it stands for.
Sharding shardingOf(mlir::Value value);

/// Records the shardings of all results of an operation.
void setShardings(mlir::Operation *op, llvm::ArrayRef<Sharding> shardings);

/// The type of a rank's part. Fails with a diagnostic at `op` when a dimension
/// is not a multiple of its axes' ranks.
mlir::FailureOr<mlir::RankedTensorType>
localType(mlir::Operation *op, mlir::RankedTensorType global,
          const Sharding &sharding, MeshOp mesh);

/// Ranks along all of `axes` together.
int64_t groupSize(MeshOp mesh, const Axes &axes);

} // namespace reckon::dist

#endif // RECKON_DIALECT_DIST_SHARDING_H
