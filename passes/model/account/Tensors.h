//===- Tensors.h - the parameters that a rank holds -----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_ACCOUNT_TENSORS_H
#define RECKON_PASSES_MODEL_ACCOUNT_TENSORS_H

#include "passes/model/Choice.h"
#include "passes/model/ModelShape.h"

#include <vector>

namespace reckon::model {

/// One parameter of a rank, after tensor and expert parallelism.
struct RankTensor {
  int64_t rows = 0, columns = 1;
  bool expert = false; ///< sharded over the experts' own group
  int64_t elements() const { return rows * columns; }
};

/// Parameters of a rank by part, in the order in which a model registers them;
/// splits that do not come out even are rounded up, as on the fullest rank.
/// Matrices are apart as in Hugging Face's names, except that `fused` joins q,
/// k, v and gate, up; a rank's experts are stacked, one tensor a matrix.
class TensorTable {
public:
  TensorTable(const ModelShape &model, const Choice &choice, bool fused,
              int64_t vocabularyMultiple);

  std::vector<RankTensor> embedding, denseLayer, moeLayer, finalNorm, head, mtp;

  /// Rows of the vocabulary on a rank.
  int64_t vocabularyRows = 0;
};

int64_t elementsOf(const std::vector<RankTensor> &tensors, bool expert);

/// What of the model is on one pipeline rank.
struct RankParts {
  int64_t denseLayers = 0, moeLayers = 0;
  bool first = false, last = false;
  auto operator<=>(const RankParts &) const = default;
};

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_ACCOUNT_TENSORS_H
