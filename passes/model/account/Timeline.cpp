//===- Timeline.cpp - a rank's memory over one step -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/account/Accountant.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

MemoryTimeline Accountant::timeline(const model::Choice &choice,
                                    int64_t ppRank) {
  StageMemory memory = this->memory(choice, ppRank);
  MemoryTimeline timeline{.ppRank = ppRank};
  uint64_t states =
      memory.parameters + memory.gradients + memory.optimizer + memory.reserve;
  uint64_t temporary = memory.logits + memory.communication + memory.workspace;
  auto add = [&](double time, const char *phase, uint64_t activations,
                 uint64_t extra) {
    timeline.points.push_back({time, phase, states, activations, extra});
  };
  add(0, "start", 0, 0);
  add(1, "steady", memory.activations, temporary);
  return timeline;
}
