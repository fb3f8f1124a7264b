//===- LlamaFp8.cpp - the linears of a Llama in eight bits, as terms ------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
//
// Quantization is a term of its own, of the whole tensor's largest magnitude:
// ranks that each hold a part of one scale it alike. Activations and weights
// are e4m3, gradients e5m2.
//
//===----------------------------------------------------------------------===//
#include "passes/prove/Llama.h"
#include "runtime/base/Fp8Layout.h"

using namespace reckon;
using namespace reckon::prove;
using namespace reckon::plan;

/// The embedding's table and the head stay in bf16.
bool Llama::inFp8(const std::string &name) const {
  return intent_.fp8 && name.rfind("model.layers.", 0) == 0;
}

/// A rank's matrix [rows, columns], of which `split` says that others have
/// more.
Llama::Codes Llama::quantize(TermId x, int64_t rows, int64_t columns,
                             bool split, bool gradient) {
  TermId amax = f32(Kernel::amax, {}, {}, {x}, 1);
  if (split)
    amax = overTp(amax, Reduction::max);
  constexpr int64_t both = 3;
  std::vector<FnId> args{constant(rows), constant(columns),
                         constant(gradient ? 1 : 0), constant(both)};
  TermId inputs[] = {x, amax};
  auto codes = [&](unsigned output) {
    return terms_.kernel(Kernel::cast_fp8, args, {}, inputs, output,
                         gradient ? DType::f8e5m2 : DType::f8e4m3,
                         fp8Codes(rows, columns));
  };
  return {codes(1), codes(2), f32(Kernel::cast_fp8, args, {}, {x, amax}, 1)};
}

/// A linear's weight, its input and the gradient of its output: which of them
/// tensor ranks split follows from which dimension of the weight they do.
Llama::Codes Llama::quantizeWeight(const std::string &name) {
  auto [n, k] = localShape(name);
  return quantize(weight(name), n, k, true, false);
}

Llama::Codes Llama::quantizeInput(TermId x, const std::string &name) {
  bool split = parameters_.at(name).tpDim == 1;
  return quantize(x, tokens_, localShape(name).second, split, false);
}

Llama::Codes Llama::quantizeGradient(TermId dy, const std::string &name) {
  bool split = parameters_.at(name).tpDim == 0;
  return quantize(dy, tokens_, localShape(name).first, split, true);
}

TermId Llama::linearFp8(TermId x, const std::string &name) {
  auto [n, k] = localShape(name);
  Codes input = quantizeInput(x, name), weight = quantizeWeight(name);
  return activation(Kernel::linear_fp8,
                    {constant(tokens_), constant(n), constant(k), constant(0)},
                    {}, {input.codes, input.scale, weight.codes, weight.scale},
                    n);
}

TermId Llama::gradInputFp8(TermId dy, const std::string &name) {
  auto [n, k] = localShape(name);
  Codes gradient = quantizeGradient(dy, name), weight = quantizeWeight(name);
  return activation(
      Kernel::linear_fp8,
      {constant(tokens_), constant(k), constant(n), constant(0)}, {},
      {gradient.codes, gradient.scale, weight.transposed, weight.scale}, k);
}

void Llama::gradWeightFp8(TermId dy, TermId x, const std::string &name) {
  auto [n, k] = localShape(name);
  Codes gradient = quantizeGradient(dy, name), input = quantizeInput(x, name);
  accumulate(
      name, Kernel::linear_fp8, {constant(n), constant(k), constant(tokens_)},
      {}, {gradient.transposed, gradient.scale, input.transposed, input.scale});
}
