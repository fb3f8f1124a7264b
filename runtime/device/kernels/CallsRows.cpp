//===- CallsRows.cpp - calls of memory, embedding and row kernels ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/CallCheck.h"
#include "runtime/device/kernels/Calls.h"

#include <initializer_list>

namespace reckon::device {

namespace {

int64_t bytesOf(const Operand &operand) {
  return operand.elements * dtypeBytes(operand.dtype);
}

} // namespace

Result<BytesCall> parseFillZero(const KernelCall &call) {
  CallCheck check(Kernel::FillZero, call);
  if (!check.ok())
    return check.error();
  return BytesCall{bytesOf(call.outputs[0])};
}

Result<BytesCall> parseCopy(const KernelCall &call) {
  CallCheck check(Kernel::Copy, call);
  if (!check.ok())
    return check.error();
  const Operand &from = call.inputs[0];
  check.output(0, "y", from.elements, from.dtype);
  return check.result(BytesCall{bytesOf(from)});
}

Result<AddCall> parseAdd(const KernelCall &call) {
  CallCheck check(Kernel::Add, call);
  if (!check.ok())
    return check.error();
  AddCall c;
  c.n = call.inputs[0].elements;
  c.dtype = check.storage(0, "a");
  check.input(0, "a", c.n, c.dtype);
  check.input(1, "b", c.n, c.dtype);
  check.output(0, "c", c.n, c.dtype);
  return check.result(c);
}

Result<EmbeddingCall> parseEmbedding(const KernelCall &call) {
  CallCheck check(Kernel::Embedding, call);
  if (!check.ok())
    return check.error();
  EmbeddingCall c;
  c.v = check.arg(0, "V");
  c.h = check.arg(1, "H");
  c.offset = check.arg(2, "vocab_offset", 0);
  c.rows = call.inputs[0].elements;
  c.dtype = check.storage(1, "weight");
  check.input(0, "tokens", c.rows, DType::I32);
  check.input(1, "weight", c.v * c.h, c.dtype);
  check.output(0, "y", c.rows * c.h, c.dtype);
  return check.result(c);
}

Result<EmbeddingCall> parseEmbeddingGrad(const KernelCall &call) {
  CallCheck check(Kernel::EmbeddingGrad, call);
  if (!check.ok())
    return check.error();
  EmbeddingCall c;
  c.v = check.arg(0, "V");
  c.h = check.arg(1, "H");
  c.offset = check.arg(2, "vocab_offset", 0);
  c.accumulate = check.flag(3, "ACC");
  c.rows = check.rowsOfInput(0, "dy", c.h);
  c.dtype = check.storage(0, "dy");
  check.input(0, "dy", c.rows * c.h, c.dtype);
  check.input(1, "tokens", c.rows, DType::I32);
  check.output(0, "gw", c.v * c.h);
  return check.result(c);
}

namespace {

/// y = norm(x) with h weights (and biases): inputs x and the vectors.
Result<NormCall> norm(Kernel kernel, const KernelCall &call) {
  CallCheck check(kernel, call);
  if (!check.ok())
    return check.error();
  NormCall c;
  c.h = check.arg(0, "H");
  c.eps = static_cast<float>(call.floats[0]);
  c.rows = check.rowsOfInput(0, "x", c.h);
  c.dtype = check.storage(0, "x");
  check.input(0, "x", c.rows * c.h, c.dtype);
  check.input(1, "w", c.h, c.dtype);
  if (call.inputs.size() > 2)
    check.input(2, "bias", c.h, c.dtype);
  check.output(0, "y", c.rows * c.h, c.dtype);
  return check.result(c);
}

Result<NormCall> normGradInput(Kernel kernel, const KernelCall &call) {
  CallCheck check(kernel, call);
  if (!check.ok())
    return check.error();
  NormCall c;
  c.h = check.arg(0, "H");
  c.eps = static_cast<float>(call.floats[0]);
  c.rows = check.rowsOfInput(0, "dy", c.h);
  c.dtype = check.storage(0, "dy");
  check.input(0, "dy", c.rows * c.h, c.dtype);
  check.input(1, "x", c.rows * c.h, c.dtype);
  check.input(2, "w", c.h, c.dtype);
  check.output(0, "dx", c.rows * c.h, c.dtype);
  return check.result(c);
}

Result<NormCall> normGradWeight(Kernel kernel, const KernelCall &call) {
  CallCheck check(kernel, call);
  if (!check.ok())
    return check.error();
  NormCall c;
  c.h = check.arg(0, "H");
  c.accumulate = check.flag(1, "ACC");
  c.eps = static_cast<float>(call.floats[0]);
  c.rows = check.rowsOfInput(0, "dy", c.h);
  c.dtype = check.storage(0, "dy");
  check.input(0, "dy", c.rows * c.h, c.dtype);
  check.input(1, "x", c.rows * c.h, c.dtype);
  check.output(0, "gw", c.h);
  if (call.outputs.size() > 1)
    check.output(1, "gbias", c.h);
  return check.result(c);
}

/// Operands of n = T * F elements each, named inputs first.
Result<ActivationCall> activation(Kernel kernel, const KernelCall &call,
                                  std::initializer_list<const char *> names) {
  CallCheck check(kernel, call);
  if (!check.ok())
    return check.error();
  ActivationCall c;
  const char *const *name = names.begin();
  int64_t f = check.arg(0, "F");
  c.n = check.rowsOfInput(0, *name, f) * f;
  c.dtype = check.storage(0, *name);
  for (size_t i = 0; i < call.inputs.size(); ++i)
    check.input(static_cast<int>(i), *name++, c.n, c.dtype);
  for (size_t i = 0; i < call.outputs.size(); ++i)
    check.output(static_cast<int>(i), *name++, c.n, c.dtype);
  return check.result(c);
}

} // namespace

Result<NormCall> parseRmsNorm(const KernelCall &call) {
  return norm(Kernel::RmsNorm, call);
}
Result<NormCall> parseRmsNormGradInput(const KernelCall &call) {
  return normGradInput(Kernel::RmsNormGradInput, call);
}
Result<NormCall> parseRmsNormGradWeight(const KernelCall &call) {
  return normGradWeight(Kernel::RmsNormGradWeight, call);
}
Result<NormCall> parseLayerNorm(const KernelCall &call) {
  return norm(Kernel::LayerNorm, call);
}
Result<NormCall> parseLayerNormGradInput(const KernelCall &call) {
  return normGradInput(Kernel::LayerNormGradInput, call);
}
Result<NormCall> parseLayerNormGradWeight(const KernelCall &call) {
  return normGradWeight(Kernel::LayerNormGradWeight, call);
}

Result<ActivationCall> parseSwiglu(const KernelCall &call) {
  return activation(Kernel::Swiglu, call, {"gate", "up", "y"});
}
Result<ActivationCall> parseSwigluGrad(const KernelCall &call) {
  return activation(Kernel::SwigluGrad, call,
                    {"dy", "gate", "up", "dgate", "dup"});
}
Result<ActivationCall> parseGelu(const KernelCall &call) {
  return activation(Kernel::Gelu, call, {"x", "y"});
}
Result<ActivationCall> parseGeluGrad(const KernelCall &call) {
  return activation(Kernel::GeluGrad, call, {"dy", "x", "dx"});
}

} // namespace reckon::device
