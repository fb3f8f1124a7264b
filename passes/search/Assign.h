//===- Assign.h - layers and recomputation of each stage ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Gives every stage of a choice its decoder layers, and the number of them
// that are fully recomputed, so that the slowest stage is as fast as memory
// allows. The embedding and the head load the first and the last stage. Exact
// for one chunk a rank, where what a stage costs hangs on nothing but its own
// layers.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_H
#define RECKON_PASSES_SEARCH_ASSIGN_H

#include "passes/search/Evaluate.h"

namespace reckon::search {

/// What an assignment may change of a choice.
struct AssignFreedom {
  bool layout = true;
  /// Layers one by one; otherwise every stage does as the choice says.
  bool recompute = true;
};

/// What the spec leaves open.
AssignFreedom assignFreedom(const Spec &spec);

struct Assignment {
  model::Choice choice;
  /// Seconds of its slowest stage on one micro-batch, both passes: no other
  /// assignment within memory is below.
  double slowest = 0;
};

/// The slowest stage of a choice with one chunk a rank, seconds.
double slowestStage(const model::Choice &choice, const Evaluator &evaluator);

/// A dynamic program over stages and the layers before them: least slowest
/// stage first, then least work in all, then fewer layers on early stages.
/// Every rank keeps to `limitBytes` without the reserve, every stage has a
/// layer. Nothing is returned when nothing fits or `choice.v` is above 1. A
/// selective choice keeps its mode; only its layout changes.
std::optional<Assignment> assignLayers(const model::Choice &choice,
                                       Evaluator &evaluator,
                                       uint64_t limitBytes,
                                       const AssignFreedom &freedom);

/// Assigns the layers of the candidates with one chunk a rank, keeps those
/// assignments that the evaluator confirms as faster than the best candidate
/// and within all limits, and sets SearchResult::refined to the fastest.
void refine(const Spec &spec, SearchResult &result);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_H
