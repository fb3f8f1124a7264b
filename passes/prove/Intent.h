//===- Intent.h - what a plan is meant to compute -------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#ifndef RECKON_PASSES_PROVE_INTENT_H
#define RECKON_PASSES_PROVE_INTENT_H

#include "frontends/spec/Spec.h"
#include "passes/model/Dims.h"

#include <array>
#include <cstdint>
#include <string>

namespace reckon::prove {

/// The numbers of a spec that decide what a step computes. How the work is
/// spread is not among them: that is what a plan adds.
struct Intent {
  model::ModelDims dims;
  std::string name;
  double rmsNormEps = 0;
  /// theta, factor, low and high frequency factor, original length; the
  /// factor is 1 without scaling.
  std::array<double, 5> rope{};
  bool bf16 = false;       ///< of activations and parameters
  bool fp8 = false;        ///< then: the decoder layers' linears multiply codes
  int64_t globalBatch = 0; ///< sequences of a step
  int64_t seed = 0;
  double lr = 0, minLr = 0, beta1 = 0, beta2 = 0, eps = 0, weightDecay = 0,
         clipGrad = 0;
  std::string schedule; ///< of the learning rate
  int64_t warmupSteps = 0, decaySteps = 0, trainSteps = 0;
  std::string dataFormat, dataPath, tokenizer;

  int64_t globalTokens() const { return globalBatch * dims.sequence; }
};

Intent intentOf(const Spec &spec);

} // namespace reckon::prove

#endif // RECKON_PASSES_PROVE_INTENT_H
