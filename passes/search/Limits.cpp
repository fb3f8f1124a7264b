//===- Limits.cpp - named limits, and which sets of them are broken -------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/Limits.h"

using namespace reckon;
using namespace reckon::search;

const char *search::limitKey(Limit limit) {
  static constexpr const char *kKeys[kNumLimits] = {
      "constraints.memory_limit_gib",
      "constraints.max_bubble",
      "constraints.host_memory_limit_gib",
      "divisibility",
      "parallelism.representation",
      "search.space",
      "parallelism.tensor_parallel",
      "parallelism.sequence_parallel",
      "parallelism.context_parallel",
      "parallelism.context_parallel_method",
      "parallelism.pipeline_parallel",
      "parallelism.virtual_pipeline",
      "parallelism.pipeline_schedule",
      "parallelism.pipeline_layout",
      "parallelism.expert_parallel",
      "parallelism.expert_tensor_parallel",
      "parallelism.data_parallel",
      "parallelism.zero_stage",
      "parallelism.micro_batch_size",
      "parallelism.recompute"};
  return kKeys[static_cast<int>(limit)];
}

std::vector<Limit> search::limitsOf(LimitMask mask) {
  std::vector<Limit> limits;
  for (int i = 0; i < kNumLimits; ++i)
    if (mask & bit(static_cast<Limit>(i)))
      limits.push_back(static_cast<Limit>(i));
  return limits;
}

std::vector<LimitMask> MaskTable::minimal() const {
  std::vector<LimitMask> masks;
  for (const auto &[mask, entry] : entries) {
    bool smallest = true;
    for (const auto &[other, unused] : entries)
      if (other != mask && (other & mask) == other)
        smallest = false;
    if (smallest)
      masks.push_back(mask);
  }
  return masks;
}
