//===- LayerWindow.h - how many layers a virtual stage may get ------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_LAYERWINDOW_H
#define RECKON_PASSES_MODEL_LAYERWINDOW_H

#include "passes/model/Choice.h"

#include <algorithm>

namespace reckon::model {

/// Decoder layers of a virtual stage that the planner assigns. With one chunk a
/// rank anything goes. With several, an order waits for the largest chunk at
/// every turn, so they differ by a layer at most; but the stages of the
/// embedding and of the head may have fewer.
struct LayerWindow {
  int64_t least = 1;
  int64_t most = 1;
  int64_t leastEnd = 1; ///< of the first and the last virtual stage
};

inline LayerWindow layerWindow(int64_t layers, const Choice &choice) {
  if (choice.v == 1)
    return {.least = 1, .most = std::max<int64_t>(1, layers - choice.pp + 1)};
  // The head of a small model with a large vocabulary weighs about so much.
  constexpr int64_t kLighterEnd = 3;
  int64_t least = std::max<int64_t>(1, layers / choice.stages());
  return {.least = least,
          .most = least + 1,
          .leastEnd = std::max<int64_t>(1, least - kLighterEnd)};
}

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_LAYERWINDOW_H
