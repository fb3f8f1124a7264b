//===- Versions.h - versions of the libraries that are loaded -------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_VERSIONS_H
#define RECKON_RUNTIME_CUDA_PLUGIN_VERSIONS_H

#include <string>

namespace reckon::cuda {

std::string cublasVersion(); ///< "13.1.0"
std::string cudnnVersion();  ///< "9.19.0"; only if cuDNN can be opened
std::string ncclVersion();   ///< "2.28.9"; only if NCCL can be opened
/// The loader's words if NCCL cannot be opened, else nothing.
std::string ncclMissing();

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGIN_VERSIONS_H
