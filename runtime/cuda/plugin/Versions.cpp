//===- Versions.cpp - versions of the libraries that are loaded -----------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Versions.h"
#include "runtime/cuda/plugin/CudnnAttention.h"
#include "runtime/cuda/plugin/Versions.h"

#include <cublasLt.h>
#include <cuda_runtime.h>

namespace reckon::cuda {

namespace {

/// "13.0" of 13000, as CUDA numbers its versions.
std::string cudaVersion(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

} // namespace

std::string cublasVersion() {
  size_t version = cublasLtGetVersion(); // 130100: 13.1.0
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::vector<std::pair<std::string, std::string>> libraryVersions() {
  int driver = 0, runtime = 0;
  // Both work without a driver, whose version is then 0.
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  std::string cudnn = cudnnMissing(), nccl = ncclMissing();
  return {
      {"driver", driver == 0 ? "none; libcuda.so.1 comes with it"
                             : "for CUDA " + cudaVersion(driver) + " or older"},
      {"CUDA runtime", cudaVersion(runtime) + ", linked into the plugin"},
      {"cuBLASLt", cublasVersion()},
      {"cuDNN", cudnn.empty() ? cudnnVersion()
                              : "not used, so bf16 attention is Reckon's own "
                                "slower kernel: " +
                                    cudnn},
      {"NCCL", nccl.empty() ? ncclVersion()
                            : "not found, and runs of plans need it: " + nccl}};
}

bool hasCodeFor(int major, int /*minor*/) {
  // Machine code for the chips of the catalogue, PTX of 8.0 for all others from
  // then on (cmake/ReckonCuda.cmake).
  return major >= 8;
}

} // namespace reckon::cuda
