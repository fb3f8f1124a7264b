//===- BlockedMatmul.h - bf16 and fp8 products from f32 ones --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_DEVICE_KERNELS_BLOCKEDMATMUL_H
#define RECKON_RUNTIME_DEVICE_KERNELS_BLOCKEDMATMUL_H

#include "runtime/device/kernels/CpuMatmul.h"

namespace reckon::device {

/// What a blocked product borrows; all of it outlives the product.
struct BlockedContext {
  MatmulCache &products; ///< gives the f32 products of blocks
  Workspace &blocks;     ///< room for three blocks
  const RowKernels &rows;
  Parallel parallel;
};

/// A product of bf16 operands on a processor without bf16 instructions, or of
/// fp8 operands: blocks are widened, multiplied in f32 and, where the result is
/// bf16, rounded when their sum is complete. A product of two bf16 or two fp8
/// is exact in f32, so only the order of sums differs from other processors.
/// The blocks are of a fixed size: no memory grows with the operands.
Result<std::unique_ptr<Matmul>> makeBlockedMatmul(const MatmulShape &shape,
                                                  const BlockedContext &ctx);

} // namespace reckon::device

#endif // RECKON_RUNTIME_DEVICE_KERNELS_BLOCKEDMATMUL_H
