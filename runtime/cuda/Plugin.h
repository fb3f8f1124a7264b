//===- Plugin.h - the CUDA device as something to load --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// What libreckon_cuda.so and libreckon_cuda_emulated.so offer. No program links
// them or needs a CUDA library to start: PluginLoader.h opens one when a plan
// or a user asks for it.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_H
#define RECKON_RUNTIME_CUDA_PLUGIN_H

#include "runtime/comm/Communicator.h"
#include "runtime/device/StreamDevice.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon::cuda {

/// Grows with every change of this file or of an interface in it.
inline constexpr uint32_t pluginAbi = 2;

/// What a plugin finds on this machine.
struct PluginProbe {
  struct Gpu {
    std::string name;
    std::string architecture; ///< "sm_90"
    int64_t totalBytes = 0;
    int64_t freeBytes = 0;
    bool supported = false; ///< the plugin has code for it
  };
  std::vector<Gpu> gpus;
  /// Library and version: {"CUDA runtime", "13.0"}.
  std::vector<std::pair<std::string, std::string>> libraries;
  /// Why there is no GPU to use; empty when there is one.
  std::string missing;
};

struct PluginOptions {
  int device = 0;    ///< among the GPUs that this process sees
  int worldSize = 1; ///< above 1 the arena is one that NCCL can register
  /// Emulation only: order of threads, blocks and streams.
  std::optional<uint64_t> seed;
};

class Plugin {
public:
  virtual ~Plugin() = default;
  virtual PluginProbe probe() = 0;
  /// Before anything of NCCL or CUDA starts: sets the environment that they
  /// need for a plan of so many streams. One line for each variable, for the
  /// run's log.
  virtual std::vector<std::string> prepareEnvironment(unsigned streams) = 0;
  virtual Result<std::unique_ptr<device::StreamDevice>>
  makeDevice(const PluginOptions &options) = 0;
  /// NCCL on this process's device; `control`, which has not started, carries
  /// what is not data.
  virtual std::unique_ptr<comm::Communicator>
  makeCommunicator(std::unique_ptr<comm::Communicator> control) = 0;
};

/// The one function that is exported: the plugin, or null when `abi` is not its
/// own. It lives as long as the process.
using PluginEntry = Plugin *(*)(uint32_t abi);
inline constexpr const char *pluginEntryName = "reckonCudaPlugin";

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGIN_H
