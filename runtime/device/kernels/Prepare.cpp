//===- Prepare.cpp - the function that prepares each kernel ---------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/Prepare.h"

namespace reckon::device {

PrepareFunction prepareFunction(Kernel kernel) {
  switch (kernel) {
  case Kernel::None:
    return nullptr;
  case Kernel::FillZero:
    return prepareFillZero;
  case Kernel::Copy:
    return prepareCopy;
  case Kernel::Add:
    return prepareAdd;
  case Kernel::Embedding:
    return prepareEmbedding;
  case Kernel::EmbeddingGrad:
    return prepareEmbeddingGrad;
  case Kernel::RmsNorm:
    return prepareRmsNorm;
  case Kernel::RmsNormGradInput:
    return prepareRmsNormGradInput;
  case Kernel::RmsNormGradWeight:
    return prepareRmsNormGradWeight;
  case Kernel::Linear:
    return prepareLinear;
  case Kernel::LinearGradInput:
    return prepareLinearGradInput;
  case Kernel::LinearGradWeight:
    return prepareLinearGradWeight;
  case Kernel::Rope:
    return prepareRope;
  case Kernel::Attention:
    return prepareAttention;
  case Kernel::AttentionGrad:
    return prepareAttentionGrad;
  case Kernel::Swiglu:
    return prepareSwiglu;
  case Kernel::SwigluGrad:
    return prepareSwigluGrad;
  case Kernel::CrossEntropyMax:
    return prepareCrossEntropyMax;
  case Kernel::CrossEntropySum:
    return prepareCrossEntropySum;
  case Kernel::CrossEntropyLoss:
    return prepareCrossEntropyLoss;
  case Kernel::CrossEntropyGrad:
    return prepareCrossEntropyGrad;
  case Kernel::SumSquares:
    return prepareSumSquares;
  case Kernel::ClipFactor:
    return prepareClipFactor;
  case Kernel::Adamw:
    return prepareAdamw;
  case Kernel::Amax:
    return prepareAmax;
  case Kernel::CastFp8:
    return prepareCastFp8;
  case Kernel::LinearFp8:
    return prepareLinearFp8;
  case Kernel::LayerNorm:
    return prepareLayerNorm;
  case Kernel::LayerNormGradInput:
    return prepareLayerNormGradInput;
  case Kernel::LayerNormGradWeight:
    return prepareLayerNormGradWeight;
  case Kernel::Gelu:
    return prepareGelu;
  case Kernel::GeluGrad:
    return prepareGeluGrad;
  }
  return nullptr;
}

} // namespace reckon::device
