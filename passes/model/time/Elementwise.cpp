//===- Elementwise.cpp - time of memory-bound operations ------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Bytes per token of a layer's forward at 2 bytes an element: norms, residual
// additions and biases over h (split only by sequence parallelism), rotation
// of queries and keys, the gate. The family's `elementwise` tells how many
// times that its kernels really move.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Layer.h"
#include "passes/model/time/Shape.h"

using namespace reckon;
using namespace reckon::model;

void LayerModel::elementwise(LayerTime &time, const Shape &s, bool moe) const {
  const ModelShape &m = job_.model;
  // Experts' gates are in experts(), where the number of tokens is known.
  double ffn = static_cast<double>(moe ? m.sharedExperts * m.expertFfn : m.ffn);
  double bytes = e_.normBytes * s.hidden / s.copies +
                 e_.rotaryBytes * (s.query + s.key) / s.t +
                 (m.gated ? e_.gatedBytes : e_.geluBytes) * ffn / s.t;
  double seconds =
      kernels_.traffic(e_.elementwise * s.tokens * bytes * kernels_.width / 2);
  time.forward.memory += seconds;
  time.inputGrad.memory += e_.elementwiseBackward * seconds;
}
