//===- ReferenceMatmul.h - an emulated device's matrix products -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_EMULATED_REFERENCEMATMUL_H
#define RECKON_RUNTIME_CUDA_EMULATED_REFERENCEMATMUL_H

#include "runtime/cuda/Matmul.h"

#include <memory>

namespace reckon::cuda {

/// The CPU device's products, put on emulated streams. They round as a GPU's
/// do: f32 sums, one rounding of the result. Its scratch is the host's.
std::unique_ptr<Matmul> makeReferenceMatmul();

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_EMULATED_REFERENCEMATMUL_H
