//===- Libraries.cpp - what stands in for cuBLASLt and cuDNN --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Libraries.h"

#include "runtime/cuda/Versions.h"
#include "runtime/cuda/emulated/ReferenceMatmul.h"

namespace reckon::cuda {

Result<Libraries> makeLibraries(Workspace &) {
  Libraries libraries;
  libraries.matmul = makeReferenceMatmul();
  libraries.attention = std::make_unique<OwnAttention>();
  libraries.names = "products and attention by reference code";
  return libraries;
}

std::vector<std::pair<std::string, std::string>> libraryVersions() {
  return {{"CUDA runtime", "emulated"}, {"NCCL", "emulated"}};
}

bool hasCodeFor(int, int) { return true; }

} // namespace reckon::cuda
