//===- FuzzSpec.cpp - any bytes as a YAML spec ----------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "frontends/spec/Load.h"
#include "runtime/base/Os.h"

#include <cstdlib>

using namespace reckon;

/// Whatever the bytes are, the loader answers with a spec or with located
/// errors: it neither crashes nor hangs, and what it accepts it reads again.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FakeFileSystem files;
  files.files["spec.yaml"] =
      std::string(reinterpret_cast<const char *>(data), size);
  std::vector<Diagnostic> errors;
  Result<Spec> spec = loadSpec({"spec.yaml"}, {}, errors, files);
  if (!spec) {
    if (spec.error().message.empty())
      std::abort();
    return 0;
  }
  files.files["spec.yaml"] = spec->canonical;
  Result<Spec> again = loadSpec({"spec.yaml"}, {}, errors, files);
  if (!again || again->canonical != spec->canonical)
    std::abort();
  return 0;
}
