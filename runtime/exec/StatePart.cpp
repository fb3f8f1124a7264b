//===- StatePart.cpp - which elements of a tensor a rank holds ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/exec/StatePart.h"

namespace reckon::exec {

using namespace plan;

int64_t StatePart::globalIndex(int64_t boxIndex) const {
  int64_t index = 0;
  int64_t stride = 1;
  for (size_t d = size.size(); d-- > 0;) {
    index += (start[d] + boxIndex % size[d]) * stride;
    boxIndex /= size[d];
    stride *= global[d];
  }
  return index;
}

StatePart partOf(const StateT &state, const MeshT &mesh, const Coord &coord) {
  StatePart part;
  part.global = state.global_shape;
  int64_t elements = 1;
  for (size_t d = 0; d < state.global_shape.size(); ++d) {
    bool whole = state.box.empty();
    part.start.push_back(whole ? 0 : evalExpr(state.box[d]->start, coord));
    part.size.push_back(whole ? state.global_shape[d]
                              : evalExpr(state.box[d]->size, coord));
    elements *= part.size.back();
  }
  part.count = elements;
  if (state.flat_axes.empty() || state.flat_elements == 0)
    return part;

  // Ranges go to the ranks of the axes in rank order, as in a collective.
  int64_t index = 0;
  int64_t ranks = 1;
  for (Axis axis : kRankOrder)
    if (std::find(state.flat_axes.begin(), state.flat_axes.end(), axis) !=
        state.flat_axes.end()) {
      index += coord[axis] * ranks;
      ranks *= axisSize(mesh, axis);
    }
  part.first = std::min(elements, index * state.flat_elements);
  part.count = std::min(elements - part.first, state.flat_elements);
  bool inPlace = state.role == Role::gradient &&
                 static_cast<int64_t>(state.bytes) >=
                     ranks * state.flat_elements * dtypeSize(state.dtype);
  part.bufferFirst = inPlace ? index * state.flat_elements : 0;
  return part;
}

bool ownsState(const StateT &state, const Coord &coord) {
  return std::all_of(state.replica_axes.begin(), state.replica_axes.end(),
                     [&](Axis axis) { return coord[axis] == 0; });
}

std::string parameterName(const std::string &stateName) {
  return stateName.substr(0, stateName.find('#'));
}

} // namespace reckon::exec
