//===- Flops.cpp - arithmetic of a token ----------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/Flops.h"

#include "passes/model/ParameterTable.h"

using namespace reckon;
using namespace reckon::model;

static double matmulFlops(const std::vector<Parameter> &parameters) {
  double flops = 0;
  for (const Parameter &parameter : parameters)
    if (parameter.matmul)
      flops += 2.0 * static_cast<double>(parameter.elements());
  return flops;
}

double model::attentionForwardFlops(const ModelDims &dims) {
  return 2.0 * static_cast<double>(dims.sequence) *
         static_cast<double>(dims.qWidth());
}

double model::layerForwardFlops(const ModelDims &dims) {
  return matmulFlops(layerParameters(dims, 0)) + attentionForwardFlops(dims);
}

double model::headForwardFlops(const ModelDims &dims) {
  return matmulFlops(headParameters(dims));
}

double model::recomputedLayerFlops(const ModelDims &dims) {
  double down =
      2.0 * static_cast<double>(dims.ffn) * static_cast<double>(dims.hidden);
  return layerForwardFlops(dims) - down;
}

TokenFlops model::tokenFlops(const ModelDims &dims, Recompute recompute) {
  auto layers = static_cast<double>(dims.layers);
  TokenFlops flops;
  flops.model = 3 * (layers * layerForwardFlops(dims) + headForwardFlops(dims));
  flops.hardware = flops.model;
  if (recompute == Recompute::Full)
    flops.hardware += layers * recomputedLayerFlops(dims);
  return flops;
}
