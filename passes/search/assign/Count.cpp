//===- Count.cpp - how many assignments a choice has ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/search/assign/Count.h"

#include "passes/model/LayerWindow.h"

#include <vector>

using namespace reckon;

double search::countAssignments(int64_t layers, int64_t p, int64_t v,
                                bool recompute) {
  if (p * v > layers)
    return 0;
  model::Choice choice;
  choice.pp = p, choice.v = v;
  model::LayerWindow window = model::layerWindow(layers, choice);
  // Of the layers that are left when every stage has its least.
  int64_t least = v * window.least, left = layers - p * least;
  int64_t most = v * (window.most - window.least);
  std::vector<double> ways(static_cast<size_t>(left + 1)), next;
  ways[0] = 1;
  for (int64_t rank = 0; rank < p; ++rank) {
    next.assign(ways.size(), 0);
    for (int64_t before = 0; before <= left; ++before)
      for (int64_t more = 0; more <= std::min(most, left - before); ++more)
        next[static_cast<size_t>(before + more)] +=
            ways[static_cast<size_t>(before)] *
            (recompute ? static_cast<double>(least + more + 1) : 1);
    ways.swap(next);
  }
  return ways.back();
}
