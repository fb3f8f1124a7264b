//===- PluginLoader.cpp - finds and opens a CUDA plugin -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/cuda/PluginLoader.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace reckon::cuda {

const char *pluginFile(PluginKind kind) {
  return kind == PluginKind::Cuda ? "libreckon_cuda.so"
                                  : "libreckon_cuda_emulated.so";
}

namespace {

/// The plugin's path; the bare name when it is in none of the places, so that
/// the loader's message says so.
std::string findPlugin(PluginKind kind) {
  const char *named = std::getenv("RECKON_CUDA_PLUGIN");
  if (kind == PluginKind::Cuda && named && *named)
    return named;
  std::error_code error;
  std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe", error);
  std::filesystem::path folder = program.parent_path();
  for (const auto &place : {folder / ".." / "lib", folder})
    if (auto file = place / pluginFile(kind);
        std::filesystem::exists(file, error))
      return std::filesystem::weakly_canonical(file, error).string();
  return (folder / ".." / "lib" / pluginFile(kind)).lexically_normal();
}

} // namespace

Result<Plugin *> loadPlugin(PluginKind kind) {
  std::string file = findPlugin(kind);
  void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return makeError(ExitCode::Environment,
                     std::string("expected to load ") + pluginFile(kind) +
                         ", got \"" + (why ? why : "no reason") +
                         "\"; `reckon doctor` says what is missing, or pass "
                         "--device cpu");
  }
  auto entry = reinterpret_cast<PluginEntry>(dlsym(library, pluginEntryName));
  Plugin *plugin = entry ? entry(pluginAbi) : nullptr;
  if (!plugin)
    return makeError(ExitCode::Environment,
                     file + ": expected a plugin of this version of Reckon, "
                            "got another one; build or install both together");
  return plugin;
}

} // namespace reckon::cuda
