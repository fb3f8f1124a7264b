//===- WithoutCudnn.cpp - a build that lacks cuDNN's headers --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/plugin/CudnnAttention.h"
#include "runtime/cuda/plugin/Versions.h"

namespace reckon::cuda {

std::string cudnnMissing() {
  return "built without cudnn.h and cudnn_frontend.h";
}

std::string cudnnVersion() { return ""; }

Result<std::unique_ptr<Attention>> makeCudnnAttention(Workspace &) {
  return makeError(ExitCode::Environment,
                   "expected cuDNN, but this plugin was " + cudnnMissing() +
                       "; run cmake/setup-debian.sh and build again");
}

} // namespace reckon::cuda
