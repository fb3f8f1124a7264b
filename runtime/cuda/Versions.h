//===- Versions.h - the libraries of this build ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_VERSIONS_H
#define RECKON_RUNTIME_CUDA_VERSIONS_H

#include <string>
#include <utility>
#include <vector>

namespace reckon::cuda {

/// Library and version as loaded, for doctor and logs. Needs no GPU.
std::vector<std::pair<std::string, std::string>> libraryVersions();

/// Whether this build has code for a compute capability.
bool hasCodeFor(int major, int minor);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_VERSIONS_H
