//===- FuzzPlan.cpp - any bytes as a plan file or a manifest --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanIO.h"

#include <cstdlib>

using namespace reckon;

/// The reader refuses what is damaged; what it accepts can be written and read
/// again to the same bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  auto plan = plan::readStagePlan(bytes, "stage-000.rkplan");
  if (plan) {
    std::string written = plan::writeStagePlan(**plan);
    auto again = plan::readStagePlan(written, "stage-000.rkplan");
    if (!again || plan::writeStagePlan(**again) != written)
      std::abort();
  } else if (plan.error().message.empty()) {
    std::abort();
  }
  auto manifest = plan::readManifest(bytes, "manifest.json");
  if (!manifest && manifest.error().message.empty())
    std::abort();
  return 0;
}
