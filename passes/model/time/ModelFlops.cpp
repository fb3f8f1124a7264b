//===- ModelFlops.cpp - arithmetic of a token for any model ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/time/ModelFlops.h"

#include <algorithm>

using namespace reckon;
using namespace reckon::model;

/// Parameters that one token multiplies in one layer.
static double layerMatmul(const ModelShape &model, bool moe) {
  LayerParameters p = model.layerParameters(moe);
  double routed = 0;
  if (moe && model.experts > 0)
    routed = static_cast<double>(p.experts) /
             static_cast<double>(model.experts) *
             static_cast<double>(model.topK);
  // Biases are in these sums; they are a ten-thousandth of the matrices.
  return static_cast<double>(p.attention + p.attentionCopied + p.mlp +
                             p.shared + p.router) +
         routed;
}

static double layerAttention(const ModelShape &model, bool square) {
  auto s = static_cast<double>(model.sequence);
  auto widths = static_cast<double>(model.qWidth() + model.contextWidth());
  return (square ? 2 : 1) * s * widths; // forward
}

double model::layerForward(const ModelShape &model, bool moe) {
  return 2 * layerMatmul(model, moe) + layerAttention(model, false);
}

double model::attentionForward(const ModelShape &model) {
  return layerAttention(model, false);
}

double model::headForward(const ModelShape &model) {
  return 2 * static_cast<double>(model.vocab) *
         static_cast<double>(model.hidden);
}

ModelFlops model::modelFlops(const ModelShape &model,
                             AttentionFlops convention) {
  int64_t dense =
      model.isMoe() ? std::min(model.firstDense, model.layers) : model.layers;
  auto mtp = static_cast<double>(model.mtpLayers);
  double moe =
      static_cast<double>(model.layers - dense) + (model.isMoe() ? mtp : 0);
  double plain = static_cast<double>(dense) + (model.isMoe() ? 0 : mtp);
  double h = static_cast<double>(model.hidden);
  ModelFlops flops;
  flops.matmul = 6 * (plain * layerMatmul(model, false) +
                      (moe > 0 ? moe * layerMatmul(model, true) : 0) +
                      (1 + mtp) * headForward(model) / 2 + mtp * 2 * h * h);
  flops.attention = 3 * (plain + moe) *
                    layerAttention(model, convention == AttentionFlops::Square);
  return flops;
}

const char *model::describe(AttentionFlops convention) {
  return convention == AttentionFlops::Causal
             ? "6N + 6Lsad per token: N without the input embedding, causal "
               "attention"
             : "6N + 12Lsad per token: N without the input embedding, "
               "attention over the whole square";
}
