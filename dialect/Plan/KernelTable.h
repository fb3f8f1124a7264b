//===- KernelTable.h - operand counts of every kernel ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The one table that says how many operands, arguments and numbers each kernel
// takes and which sizes belong together. What they mean stands in
// runtime/device/Kernels.h; the names are those of the plan file's Kernel enum.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_DIALECT_PLAN_KERNELTABLE_H
#define RECKON_DIALECT_PLAN_KERNELTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace reckon::planir {

/// Operand counts of one kernel. `optionalOuts` more outputs are allowed.
struct KernelSignature {
  const char *name;
  unsigned ins, outs, optionalOuts, args, floats;
};

/// All kernels, in the order of the plan file's enum, without `none`.
llvm::ArrayRef<KernelSignature> kernelTable();

/// The kernel called `name`, or null.
const KernelSignature *findKernel(llvm::StringRef name);

/// What one call looks like: elements of each operand, constant arguments.
struct KernelCallShape {
  llvm::ArrayRef<int64_t> ins, outs, args;
};

/// Checks that operand sizes agree with each other and with the arguments.
/// Returns an empty string, or what is wrong: "in 1 (weight) has 40 elements,
/// expected N * K = 64". The counts must match the signature already.
std::string checkKernelSizes(const KernelSignature &kernel,
                             const KernelCallShape &call);

/// Floating-point operations of one call: 2 * rows * N * K for the linear
/// kernels; causal attention counts half of the square: 2 * rows * S * heads *
/// head_dim forward and 2.5 times as much backward; all others 0, as is usual.
int64_t kernelFlops(const KernelSignature &kernel, const KernelCallShape &call);

} // namespace reckon::planir

#endif // RECKON_DIALECT_PLAN_KERNELTABLE_H
