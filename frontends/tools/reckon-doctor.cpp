//===- reckon-doctor.cpp - reckon doctor ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/tools/Commands.h"
#include "runtime/base/Status.h"
#include "runtime/cuda/PluginLoader.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <netinet/in.h>
#include <sched.h>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace reckon;

namespace {

void line(const char *what, const std::string &found) {
  std::printf("%-12s %s\n", what, found.c_str());
}

/// Whether the dynamic linker finds a library, without keeping it.
bool hasLibrary(const char *name) {
  void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (library)
    dlclose(library);
  return library != nullptr;
}

std::string programPath(const std::string &name) {
  const char *path = std::getenv("PATH");
  std::stringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::filesystem::path file = std::filesystem::path(folder) / name;
    if (access(file.c_str(), X_OK) == 0)
      return file.string();
  }
  return "";
}

std::string orMissing(const std::string &found, const char *consequence) {
  return found.empty() ? std::string("not found; ") + consequence : found;
}

std::string vectorUnits() {
#if defined(__x86_64__)
  std::string found = "x86-64";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    found += " avx2 fma";
  if (__builtin_cpu_supports("avx512f"))
    found += " avx512f";
  if (__builtin_cpu_supports("avx512bf16"))
    found += " avx512bf16";
  return found;
#else
  return "baseline kernels only";
#endif
}

std::string memory() {
  auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  auto free = static_cast<double>(sysconf(_SC_AVPHYS_PAGES));
  auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  char text[96];
  std::snprintf(text, sizeof text, "%.1f GiB, %.1f GiB free",
                pages * page / 1073741824.0, free * page / 1073741824.0);
  return text;
}

/// Ranks meet on a port that the system picks.
std::string loopbackPort() {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool good =
      fd >= 0 &&
      bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0 &&
      listen(fd, 1) == 0;
  if (fd >= 0)
    close(fd);
  return good ? "can listen on the loopback interface"
              : "cannot listen on the loopback interface; several local "
                "processes cannot meet";
}

std::string gibibytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB",
                static_cast<double>(bytes) / 1073741824.0);
  return text;
}

/// Everything that --device cuda needs, and what --device auto does with it.
/// The plugin looks for the rest itself, so that it is asked.
void cudaDevice() {
  Result<cuda::Plugin *> plugin = cuda::loadPlugin(cuda::PluginKind::Cuda);
  std::string missing = plugin ? "" : plugin.error().message;
  line("CUDA", plugin ? "the plugin loads" : missing);
  if (plugin) {
    cuda::PluginProbe probe = (*plugin)->probe();
    for (const auto &[library, version] : probe.libraries)
      line(library.c_str(), version);
    for (size_t i = 0; i < probe.gpus.size(); ++i) {
      const auto &gpu = probe.gpus[i];
      line(("GPU " + std::to_string(i)).c_str(),
           gpu.name + ", " + gpu.architecture + ", " +
               gibibytes(gpu.totalBytes) +
               (gpu.supported ? "" : "; the plugin has no code for it"));
    }
    missing = probe.missing;
    if (!missing.empty())
      line("GPUs", "none that runs can use: " + missing);
  }
  line("auto", missing.empty()
                   ? "--device auto takes the GPUs for plans of GPUs"
                   : "--device auto takes the CPU");
}

} // namespace

int reckon::doctorMain(int argc, char **argv) {
  CLI::App app{"Says what this machine has for compiling and running plans."};
  app.name("reckon doctor");
  if (int code = parseArguments(app, argc, argv); code >= 0)
    return code;

  cpu_set_t set;
  int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
  line("reckon", RECKON_VERSION);
  line("cores", std::to_string(cores) + " for this process");
  line("vectors", vectorUnits());
  line("memory", memory());
  bool compiler = hasLibrary(kCompilerLibrary);
  const char *why = compiler ? nullptr : dlerror();
  line("compiler", compiler ? "loads, with MLIR"
                            : std::string("not loadable; reckon compile does "
                                          "not work here: ") +
                                  (why ? why : "no reason given"));
  line("oneDNN", hasLibrary("libdnnl.so.2") || hasLibrary("libdnnl.so.3")
                     ? "found"
                     : "not found; reckon-run does not start");
  line("nvcc", orMissing(programPath("nvcc"), "no CUDA plugin can be built"));
  cudaDevice();
  line("Slurm", orMissing(programPath("srun"), "runs start local processes"));
  line("ports", loopbackPort());
  return static_cast<int>(ExitCode::Done);
}
