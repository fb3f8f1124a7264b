//===- Goodput.h - what goodput needs to know of a plan -------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_GOODPUT_H
#define RECKON_PASSES_SEARCH_GOODPUT_H

#include "passes/goodput/Inputs.h"
#include "passes/search/Search.h"

namespace reckon::search {

goodput::PlanFacts planFacts(const Candidate &candidate);

/// Expected seconds of train_steps with failures and checkpoints; infinite
/// without forward progress. The objective time_to_train.
double timeToTrain(const Spec &spec, const Candidate &candidate);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_GOODPUT_H
