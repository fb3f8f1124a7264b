//===- PluginLoader.h - finds and opens a CUDA plugin ---------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGINLOADER_H
#define RECKON_RUNTIME_CUDA_PLUGINLOADER_H

#include "runtime/cuda/Plugin.h"

namespace reckon::cuda {

enum class PluginKind { Cuda, Emulated };

/// "libreckon_cuda.so" or "libreckon_cuda_emulated.so".
const char *pluginFile(PluginKind kind);

/// Opens a plugin: the file that RECKON_CUDA_PLUGIN names (of the real one
/// only), else the one in ../lib or beside the program. It stays open. Fails
/// with Environment and the loader's own words.
Result<Plugin *> loadPlugin(PluginKind kind);

} // namespace reckon::cuda

#endif // RECKON_RUNTIME_CUDA_PLUGINLOADER_H
