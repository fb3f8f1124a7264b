//===- Shape.h - sizes of one layer on one rank ---------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_TIME_SHAPE_H
#define RECKON_PASSES_MODEL_TIME_SHAPE_H

#include "passes/model/time/Layer.h"

namespace reckon::model {

struct LayerModel::Shape {
  double tokens = 0; ///< of a micro-batch after the context split
  double t = 1;      ///< tensor parallel
  double copies = 1; ///< token-wise ops run on 1/copies of the tokens (SP)
  double sequence = 0, hidden = 0;
  double query = 0, key = 0, value = 0, contextWidth = 0; ///< before the split
  double keyWays = 1;    ///< parts of the keys and values among the ranks
  double keyColumns = 0; ///< of their projections on this rank
  double heads = 0;      ///< of this rank
  double headQuery = 0, headValue = 0;
  double hiddenBytes() const { return 2 * tokens * hidden; }
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_TIME_SHAPE_H
