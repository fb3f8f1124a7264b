//===- ParameterTable.h - every parameter of a model ----------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_MODEL_PARAMETERTABLE_H
#define RECKON_PASSES_MODEL_PARAMETERTABLE_H

#include "passes/model/Dims.h"

#include <optional>
#include <string>
#include <vector>

namespace reckon::model {

enum class ParameterInit { Normal, Ones };

/// One parameter under its Hugging Face name.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape; ///< global
  /// The dimension that tensor parallelism splits: 0 for q, k, v, gate, up,
  /// the embedding and the head (rows = output features or vocabulary), 1 for
  /// o and down; none for norms.
  std::optional<int64_t> tpDim;
  bool decay = false; ///< weight decay: on matrices, not on norms
  ParameterInit init = ParameterInit::Normal;
  /// Read by a matmul whose FLOPs count as the model's: all matrices but the
  /// input embedding, which is a lookup.
  bool matmul = false;

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t size : shape)
      n *= size;
    return n;
  }
  /// Elements of one rank. Exact only when tp divides the split dimension.
  int64_t localElements(int64_t tp) const {
    return tpDim ? elements() / tp : elements();
  }
};

/// model.embed_tokens.weight [V, H].
Parameter embeddingParameter(const ModelDims &dims);
/// The nine parameters of model.layers.`layer`, in program order.
std::vector<Parameter> layerParameters(const ModelDims &dims, int64_t layer);
/// model.norm.weight [H] and lm_head.weight [V, H].
std::vector<Parameter> headParameters(const ModelDims &dims);

/// All parameters in program order.
std::vector<Parameter> allParameters(const ModelDims &dims);

/// 70553706496 for Llama 70B, 8030261248 for 8B, 405853388800 for 405B.
int64_t parameterCount(const ModelDims &dims);

} // namespace reckon::model

#endif // RECKON_PASSES_MODEL_PARAMETERTABLE_H
