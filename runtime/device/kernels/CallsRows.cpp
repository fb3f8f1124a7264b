//===- CallsRows.cpp - calls of memory, embedding and row kernels ---------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/kernels/CallCheck.h"
#include "runtime/device/kernels/Calls.h"

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

Result<RmsNormCall> parseRmsNorm(const KernelCall &call) {
  CallCheck check(Kernel::RmsNorm, call);
  if (!check.ok())
    return check.error();
  RmsNormCall c;
  c.h = check.arg(0, "H");
  c.eps = static_cast<float>(call.floats[0]);
  c.rows = check.rowsOfInput(0, "x", c.h);
  c.dtype = check.storage(0, "x");
  check.input(0, "x", c.rows * c.h, c.dtype);
  check.input(1, "w", c.h, c.dtype);
  check.output(0, "y", c.rows * c.h, c.dtype);
  return check.result(c);
}

Result<RmsNormCall> parseRmsNormGradInput(const KernelCall &call) {
  CallCheck check(Kernel::RmsNormGradInput, call);
  if (!check.ok())
    return check.error();
  RmsNormCall c;
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

Result<RmsNormCall> parseRmsNormGradWeight(const KernelCall &call) {
  CallCheck check(Kernel::RmsNormGradWeight, call);
  if (!check.ok())
    return check.error();
  RmsNormCall c;
  c.h = check.arg(0, "H");
  c.accumulate = check.flag(1, "ACC");
  c.eps = static_cast<float>(call.floats[0]);
  c.rows = check.rowsOfInput(0, "dy", c.h);
  c.dtype = check.storage(0, "dy");
  check.input(0, "dy", c.rows * c.h, c.dtype);
  check.input(1, "x", c.rows * c.h, c.dtype);
  check.output(0, "gw", c.h);
  return check.result(c);
}

Result<SwigluCall> parseSwiglu(const KernelCall &call) {
  CallCheck check(Kernel::Swiglu, call);
  if (!check.ok())
    return check.error();
  SwigluCall c;
  int64_t f = check.arg(0, "F");
  c.n = check.rowsOfInput(0, "gate", f) * f;
  c.dtype = check.storage(0, "gate");
  check.input(0, "gate", c.n, c.dtype);
  check.input(1, "up", c.n, c.dtype);
  check.output(0, "y", c.n, c.dtype);
  return check.result(c);
}

Result<SwigluCall> parseSwigluGrad(const KernelCall &call) {
  CallCheck check(Kernel::SwigluGrad, call);
  if (!check.ok())
    return check.error();
  SwigluCall c;
  int64_t f = check.arg(0, "F");
  c.n = check.rowsOfInput(0, "dy", f) * f;
  c.dtype = check.storage(0, "dy");
  check.input(0, "dy", c.n, c.dtype);
  check.input(1, "gate", c.n, c.dtype);
  check.input(2, "up", c.n, c.dtype);
  check.output(0, "dgate", c.n, c.dtype);
  check.output(1, "dup", c.n, c.dtype);
  return check.result(c);
}

} // namespace reckon::device
