//===- Moe.cpp - time of routed experts -----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// A rank routes its tokens (1/t of a micro-batch's) to top-k experts each, two
// all-to-alls forward and two backward, and runs its own experts as one
// grouped product: `batch` = experts of the rank, m = tokens that one expert
// gets. The heaviest rank has `imbalance` times the mean.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/Layer.h"
#include "passes/model/time/Shape.h"

#include <algorithm>
#include <cmath>

using namespace reckon;
using namespace reckon::model;

void LayerModel::experts(LayerTime &time, const LayerKey &key,
                         const Shape &s) const {
  const ModelShape &m = job_.model;
  auto total = static_cast<double>(m.experts);
  auto topK = static_cast<double>(m.topK);
  auto e = static_cast<double>(key.ep), x = static_cast<double>(key.etp);
  auto f = static_cast<double>(m.expertFfn) / x;
  double own = s.tokens / s.t;
  double imbalance =
      job_.moeCapacityFactor > 0 ? job_.moeCapacityFactor : e_.imbalance;

  linear(time, own, total, s.hidden, false); // the router
  double local = total / e;
  // Tokens of one expert, padded; expert tensor parallelism gathers those of
  // its ranks.
  double rows = std::ceil(own * topK * x / local * imbalance / 16) * 16;
  Work forward, input, weight;
  auto grouped = [&](double n, double k) {
    double share = e_.groupedMatmul;
    forward.kernel += kernels_.matmul(rows, n, k, true, local) / share;
    input.kernel += kernels_.matmul(rows, k, n, true, local) / share;
    weight.kernel +=
        kernels_.matmul(k, n, rows, true, local, e_.weightGradBytes) / share;
    if (kernels_.fp8Rate > 0) {
      forward.memory += kernels_.traffic(e_.castBytes * rows * local * k);
      input.memory += kernels_.traffic(e_.castBytes * rows * local * n);
    }
  };
  grouped((m.gated ? 2 : 1) * f, s.hidden);
  grouped(s.hidden, f);
  double gate = (m.gated ? e_.gatedBytes : e_.geluBytes) * f * rows * local;
  double permute = e_.permuteBytes * s.hidden * topK * own;
  double moved =
      kernels_.traffic(e_.elementwise * kernels_.width / 2 * (gate + permute));
  forward.memory += moved;
  input.memory += e_.elementwiseBackward * moved;
  time.forward += forward;
  time.inputGrad += input;
  time.weightGrad += weight;

  double bytes = 2 * s.hidden * topK * own;
  double send = 2 * links_.allToAll({key.ep, key.etp}, bytes, topK);
  if (key.etp > 1)
    send += 2 * links_.tensorPass({key.etp, 1}, bytes * x);
  Exposure exchange{send, e_.expertExposed * send};
  time.expertForward += exchange;
  time.expertBackward += exchange;
}
