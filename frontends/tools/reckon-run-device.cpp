//===- reckon-run-device.cpp - which device a run uses --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/reckon-run-device.h"

#include "runtime/cuda/PluginLoader.h"
#include "runtime/device/CpuDevice.h"

#include <dlfcn.h>

using namespace reckon;

namespace {

/// Why no GPU can be used here; empty when one can.
std::string whyNoGpu() {
  // Cheaper than the plugin, whose libraries take a second to map.
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!driver)
    return "no NVIDIA driver (libcuda.so.1)";
  Result<cuda::Plugin *> plugin = cuda::loadPlugin(cuda::PluginKind::Cuda);
  return plugin ? (*plugin)->probe().missing : plugin.error().message;
}

} // namespace

ChosenDevice reckon::chooseDevice(const std::string &asked,
                                  const plan::Manifest &manifest) {
  if (asked != "auto")
    return {asked, ""};
  if (manifest.cluster.accelerator.empty() ||
      manifest.cluster.accelerator == "cpu")
    return {"cpu", ""};
  std::string why = whyNoGpu();
  if (why.empty())
    return {"cuda", ""};
  return {"cpu",
          "the plan is for " + manifest.cluster.accelerator + ", but " + why};
}

Result<Machine> reckon::openMachine(const std::string &kind, const RankEnv &env,
                                    int threads, size_t streams,
                                    std::optional<uint64_t> seed) {
  Machine machine;
  if (kind == "cpu") {
    device::CpuDeviceOptions options;
    options.threads = threads;
    auto device = device::makeCpuDevice(options);
    if (!device)
      return device.error();
    machine.device = std::move(*device);
    return machine;
  }
  auto plugin = cuda::loadPlugin(kind == "cuda" ? cuda::PluginKind::Cuda
                                                : cuda::PluginKind::Emulated);
  if (!plugin)
    return plugin.error();
  machine.log = (*plugin)->prepareEnvironment(static_cast<unsigned>(streams));
  cuda::PluginProbe probe = (*plugin)->probe();
  cuda::PluginOptions options;
  options.worldSize = env.world;
  options.seed = seed;
  // Slurm may show a task its own GPU only, or all of the node.
  options.device = probe.gpus.size() == 1 ? 0 : env.localRank;
  auto device = (*plugin)->makeDevice(options);
  if (!device)
    return device.error();
  machine.device = std::move(*device);
  machine.wrap = [plugin = *plugin](std::unique_ptr<comm::Communicator> own) {
    return plugin->makeCommunicator(std::move(own));
  };
  return machine;
}
