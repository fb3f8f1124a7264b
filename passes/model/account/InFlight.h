//===- InFlight.h - how many stashes live at once -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_INFLIGHT_H
#define RECKON_PASSES_MODEL_ACCOUNT_INFLIGHT_H

#include "passes/model/Choice.h"

#include <vector>

namespace reckon::model {

/// Micro-batches of every chunk of a rank whose stash lives at one moment.
using LiveVector = std::vector<int64_t>;

/// The moments of pipeline rank `rank` that can hold the most, whatever the
/// chunks' sizes: every other moment has no more of any chunk than one of
/// these.
std::vector<LiveVector> peakLiveVectors(const Choice &choice, int64_t rank);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_INFLIGHT_H
