//===- Assign.h - layers and recomputation of each stage ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Gives every virtual stage of a choice its decoder layers, and the number of
// them that are fully recomputed, so that the step is as short as memory
// allows. The embedding and the head load the first and the last stage.
//
// A dynamic program over the ranks does so for one arrangement of a rank's
// layers over its chunks, which takes well below a millisecond. Z3, with cuts
// from the cost model, is free in that arrangement; it is asked about the best
// choice of all.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_SEARCH_ASSIGN_ASSIGN_H
#define RECKON_PASSES_SEARCH_ASSIGN_ASSIGN_H

#include "passes/search/Evaluate.h"

#include <limits>

namespace reckon::search {

/// What an assignment may change of a choice.
struct AssignFreedom {
  bool layout = true;
  /// Layers one by one; otherwise every stage does as the choice says.
  bool recompute = true;
};

/// What the spec leaves open.
AssignFreedom assignFreedom(const Spec &spec);

struct Assigned {
  /// The fastest assignment that was found; nothing when none fits or none is
  /// below the step that was to be beaten.
  std::optional<model::Choice> choice;
  double step = 0; ///< seconds, of `choice`
  /// No assignment within memory has a shorter step; at most the step that was
  /// to be beaten.
  double bound = 0;
  /// `dynamic_program` or `z3`.
  const char *method = "dynamic_program";
};

struct AssignOptions {
  AssignFreedom freedom;
  /// Only what is faster than this counts, seconds.
  double beat = std::numeric_limits<double>::infinity();
  /// Cuts after which Z3 stops; what it has then proved is in the bound.
  int64_t cuts = 64;
  /// Ask Z3, which may arrange the layers of a rank over its chunks as it
  /// likes, where cuts can tell it what is wrong with them.
  bool z3 = false;
};

/// Assigns the layers of `choice`, whose own layout and recomputation count
/// only where the options do not free them. A selective choice keeps its mode.
/// No rank needs more than `limitBytes` without the reserve; layers are within
/// model::layerWindow().
Assigned assignLayers(const model::Choice &choice, Evaluator &evaluator,
                      uint64_t limitBytes, const AssignOptions &options);

} // namespace reckon::search

#endif // RECKON_PASSES_SEARCH_ASSIGN_ASSIGN_H
