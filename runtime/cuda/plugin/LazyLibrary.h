//===- LazyLibrary.h - a library that may be missing ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// The plugin loads without the libraries that not everything needs: cuDNN is
// there for speed, NCCL for plans but not for the self-test. Their functions
// are defined here as calls through a table that is filled when one is first
// needed, so that everything else uses them like linked ones.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_CUDA_PLUGIN_LAZYLIBRARY_H
#define RECKON_RUNTIME_CUDA_PLUGIN_LAZYLIBRARY_H

#include <dlfcn.h>

#include <string>

namespace reckon::cuda {

/// Opened at the first use; it stays open.
class LazyLibrary {
public:
  explicit LazyLibrary(const char *file)
      : library_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
    if (library_)
      return;
    const char *why = dlerror();
    missing_ = why ? why : std::string(file) + " cannot be opened";
  }

  /// The loader's words if it cannot be opened, else nothing.
  const std::string &missing() const { return missing_; }

  template <typename Function> Function *find(const char *name) const {
    return library_ ? reinterpret_cast<Function *>(dlsym(library_, name))
                    : nullptr;
  }

private:
  void *library_;
  std::string missing_;
};

} // namespace reckon::cuda

/// Defines a C function as one of LIBRARY, a function that returns a
/// LazyLibrary; FAILURE is its result where the library lacks it.
#define RECKON_LAZY(LIBRARY, FAILURE, RESULT, NAME, PARAMETERS, ARGUMENTS)     \
  extern "C" RESULT NAME PARAMETERS {                                          \
    static auto *const function = LIBRARY().find<decltype(NAME)>(#NAME);       \
    return function ? function ARGUMENTS : FAILURE;                            \
  }

#endif // RECKON_RUNTIME_CUDA_PLUGIN_LAZYLIBRARY_H
