//===- StatePart.h - which elements of a tensor a rank holds --------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A state of the plan is a box of a global tensor, or, under ZeRO, a range of
// that box flattened. Initial values, imports and dumps all walk it as runs of
// elements that are contiguous both in the global tensor and on this rank, so
// they agree in every layout by construction.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_RUNTIME_EXEC_STATEPART_H
#define RECKON_RUNTIME_EXEC_STATEPART_H

#include "runtime/plan/Coordinates.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon::exec {

/// Which elements of a global tensor one rank holds, and where.
struct StatePart {
  std::vector<int64_t> global; ///< shape of the whole tensor
  std::vector<int64_t> start;  ///< of the box, per dimension
  std::vector<int64_t> size;   ///< of the box, per dimension
  int64_t first = 0;           ///< range of the flattened box that is held
  int64_t count = 0;           ///< without padding; may be 0
  int64_t bufferFirst = 0; ///< element of the state's buffer where it starts

  /// Calls visit(globalIndex, bufferIndex, count) for every run, ascending;
  /// indices count elements of the flattened global tensor and of the state's
  /// buffer.
  template <typename Visit> void forEachRun(Visit visit) const {
    int64_t run = 1; // elements of the box that are contiguous globally
    size_t outer = size.size();
    while (outer > 0) {
      --outer;
      run *= size[outer];
      if (size[outer] != global[outer])
        break;
    }
    for (int64_t at = first; at < first + count;) {
      int64_t inside = run > 0 ? at % run : 0;
      int64_t n = std::min(run - inside, first + count - at);
      visit(globalIndex(at), bufferFirst + at - first, n);
      at += n;
    }
  }

  /// Flattened global index of an element of the flattened box.
  int64_t globalIndex(int64_t boxIndex) const;
};

/// The part of `state` on the rank at `coord`. A gradient whose buffer is large
/// enough for all ranks' ranges is reduced in place: the rank's own range lies
/// at its place in the whole buffer.
StatePart partOf(const plan::StateT &state, const plan::MeshT &mesh,
                 const plan::Coord &coord);

/// Whether this rank, among those with equal values, speaks for the state.
bool ownsState(const plan::StateT &state, const plan::Coord &coord);

/// "layers.0.w#momentum" -> "layers.0.w".
std::string parameterName(const std::string &stateName);

} // namespace reckon::exec

#endif // RECKON_RUNTIME_EXEC_STATEPART_H
