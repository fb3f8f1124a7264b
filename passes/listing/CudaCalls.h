//===- CudaCalls.h - an instruction as the CUDA call that it becomes ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_LISTING_CUDACALLS_H
#define RECKON_PASSES_LISTING_CUDACALLS_H

#include "runtime/plan/Coordinates.h"

#include <span>
#include <string>
#include <vector>

namespace reckon::listing {

/// Names of a kernel's arguments and constants in the order of the plan, as in
/// runtime/device/Kernels.h; empty for kernels that take none.
struct KernelNames {
  std::vector<const char *> args;
  std::vector<const char *> floats;
};
const KernelNames &kernelNames(plan::Kernel kernel);

/// `ncclBfloat16`.
const char *ncclType(plan::DType type);
/// `ncclSum`.
const char *ncclReduction(plan::Reduction reduction);

/// `stash+65536 bf16[128,32]`.
std::string operandText(const plan::StagePlanT &plan,
                        const plan::BufferT &buffer,
                        const plan::FragmentT *fragment);

/// One instruction as lines: the call, and for a collective of several
/// segments one more line each, which are calls of one NCCL group. Numbers
/// that differ between ranks are expressions over their coordinates.
std::vector<std::string> cudaCall(const plan::StagePlanT &plan,
                                  const plan::FragmentT &fragment,
                                  const plan::InstructionT &op);

} // namespace reckon::listing

#endif // RECKON_PASSES_LISTING_CUDACALLS_H
