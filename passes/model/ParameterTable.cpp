//===- ParameterTable.cpp - every parameter of a model --------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/model/ParameterTable.h"

using namespace reckon;
using namespace reckon::model;

static Parameter matrix(std::string name, int64_t rows, int64_t columns,
                        int64_t tpDim) {
  return {.name = std::move(name),
          .shape = {rows, columns},
          .tpDim = tpDim,
          .decay = true,
          .matmul = true};
}

static Parameter norm(std::string name, int64_t width) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.shape = {width};
  parameter.init = ParameterInit::Ones;
  return parameter;
}

Parameter model::embeddingParameter(const ModelDims &dims) {
  Parameter embedding =
      matrix("model.embed_tokens.weight", dims.vocab, dims.hidden, 0);
  embedding.matmul = false;
  return embedding;
}

std::vector<Parameter> model::layerParameters(const ModelDims &dims,
                                              int64_t layer) {
  std::string prefix = "model.layers." + std::to_string(layer) + ".";
  int64_t h = dims.hidden, q = dims.qWidth(), kv = dims.kvWidth(), f = dims.ffn;
  return {norm(prefix + "input_layernorm.weight", h),
          matrix(prefix + "self_attn.q_proj.weight", q, h, 0),
          matrix(prefix + "self_attn.k_proj.weight", kv, h, 0),
          matrix(prefix + "self_attn.v_proj.weight", kv, h, 0),
          matrix(prefix + "self_attn.o_proj.weight", h, q, 1),
          norm(prefix + "post_attention_layernorm.weight", h),
          matrix(prefix + "mlp.gate_proj.weight", f, h, 0),
          matrix(prefix + "mlp.up_proj.weight", f, h, 0),
          matrix(prefix + "mlp.down_proj.weight", h, f, 1)};
}

std::vector<Parameter> model::headParameters(const ModelDims &dims) {
  return {norm("model.norm.weight", dims.hidden),
          matrix("lm_head.weight", dims.vocab, dims.hidden, 0)};
}

std::vector<Parameter> model::allParameters(const ModelDims &dims) {
  std::vector<Parameter> all{embeddingParameter(dims)};
  auto append = [&](std::vector<Parameter> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  };
  for (int64_t layer = 0; layer < dims.layers; ++layer)
    append(layerParameters(dims, layer));
  append(headParameters(dims));
  return all;
}

int64_t model::parameterCount(const ModelDims &dims) {
  int64_t count = embeddingParameter(dims).elements();
  for (const Parameter &parameter : layerParameters(dims, 0))
    count += dims.layers * parameter.elements();
  for (const Parameter &parameter : headParameters(dims))
    count += parameter.elements();
  return count;
}
