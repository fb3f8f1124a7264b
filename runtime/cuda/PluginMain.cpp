//===- PluginMain.cpp - the entry of a CUDA plugin ------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/Check.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/cuda/Nccl.h"
#include "runtime/cuda/NcclCommunicator.h"
#include "runtime/cuda/NcclEnvironment.h"
#include "runtime/cuda/Plugin.h"
#include "runtime/cuda/Versions.h"

namespace reckon::cuda {

namespace {

Status ncclMemory(ncclResult_t result, const char *call) {
  if (result == ncclSuccess)
    return Status::success();
  return makeError(ExitCode::Environment,
                   std::string("expected ") + call + " to succeed, got \"" +
                       ncclGetErrorString(result) +
                       "\"; free the GPU's memory or raise "
                       "cluster.memory_reserve_gib and compile again");
}
Status allocateForNccl(void **memory, size_t bytes) {
  return ncclMemory(ncclMemAlloc(memory, bytes), "ncclMemAlloc");
}
Status releaseForNccl(void *memory) {
  return ncclMemory(ncclMemFree(memory), "ncclMemFree");
}

class CudaPlugin final : public Plugin {
public:
  PluginProbe probe() override;
  std::vector<std::string> prepareEnvironment(unsigned streams) override {
    EnvironmentNeeds needs;
    needs.streams = streams;
    return applyEnvironment(settingsFor(needs));
  }
  Result<std::unique_ptr<device::StreamDevice>>
  makeDevice(const PluginOptions &options) override;
  std::unique_ptr<comm::Communicator>
  makeCommunicator(std::unique_ptr<comm::Communicator> control) override {
    return std::make_unique<NcclCommunicator>(std::move(control),
                                              NcclOptions{});
  }
};

PluginProbe CudaPlugin::probe() {
  PluginProbe probe;
  probe.libraries = libraryVersions();
  int count = -1;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count <= 0) {
    (void)cudaGetLastError();
    probe.missing = error == cudaSuccess
                        ? "the driver knows no GPU"
                        : std::string(cudaGetErrorName(error)) + ": " +
                              cudaGetErrorString(error);
    return probe;
  }
  bool any = false;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp prop;
    if (cudaGetDeviceProperties(&prop, i) != cudaSuccess)
      continue;
    PluginProbe::Gpu gpu;
    gpu.name = prop.name;
    gpu.architecture =
        "sm_" + std::to_string(prop.major) + std::to_string(prop.minor);
    gpu.totalBytes = static_cast<int64_t>(prop.totalGlobalMem);
    gpu.supported = hasCodeFor(prop.major, prop.minor);
    any |= gpu.supported;
    probe.gpus.push_back(std::move(gpu));
  }
  if (!any)
    probe.missing = "this build has no code for the GPUs of this machine";
  return probe;
}

Result<std::unique_ptr<device::StreamDevice>>
CudaPlugin::makeDevice(const PluginOptions &options) {
  PluginProbe found = probe();
  if (!found.missing.empty())
    return makeError(ExitCode::Environment,
                     "expected a GPU, got none: " + found.missing +
                         "; see `reckon doctor`, or pass --device cpu");
  if (options.device < 0 ||
      static_cast<size_t>(options.device) >= found.gpus.size())
    return makeError(ExitCode::Environment,
                     "expected GPU " + std::to_string(options.device) +
                         " for this local rank, got " +
                         std::to_string(found.gpus.size()) +
                         " GPUs; start one task a GPU (--gpus-per-node)");
#ifdef RECKON_CUDA_EMULATED
  if (options.seed)
    setSeed(*options.seed);
#endif
  CudaDeviceOptions device;
  device.device = options.device;
  if (options.worldSize > 1)
    device.arena = {allocateForNccl, releaseForNccl};
  return makeCudaDevice(device);
}

} // namespace

} // namespace reckon::cuda

extern "C" __attribute__((visibility("default"))) reckon::cuda::Plugin *
reckonCudaPlugin(uint32_t abi) {
  static reckon::cuda::CudaPlugin plugin;
  return abi == reckon::cuda::pluginAbi ? &plugin : nullptr;
}
